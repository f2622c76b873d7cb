// Reductions. Any axis of any tensor is the middle axis of a view [A, N, B].
use "reference/act.cps";

op reduction(x[A, N, B]; f: Reduce) -> y[A, B] {
    let r = f == Reduce.sum ? sum(x, axis: 1) : f == Reduce.mean ? mean(x, axis: 1)
          : f == Reduce.max ? max(x, axis: 1) : min(x, axis: 1);
    y = r.view("a 1 b -> a b");
}
