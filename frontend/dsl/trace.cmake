# Tracing of leaf bodies: what does not need the evaluator stands on its own for unit tests.
cps_library(cps_trace_core
    SRCS trace_view.c trace_pattern.c trace_graph.c trace_cost.c trace_combine.c trace_rows.c
         trace_select.c
    DEPS cps_ir cps_isa cps_base)
