// A register is read and decided upon: the engines meet before the read and behind it, and not once more before the branch.
// RUN: copse kernel run pick -I %s --dims T=128,N=64 --emit asm --no-cache
op pick(x[T, N], n[1]: i32) -> y[T, N] {
    y = x;
}

leaf pick_rows for pick on trn2 {
    cases (T: 128, N: 64);
    sbuf t[T, N] <- x;
    sbuf c[1, 1]: i32 <- n.view("n -> 1 n");
    y <- t;
    reg r: i32 <- c[0];
    when (r > 0) { y <- t; }
}
// OUT:
// // kernel pick_rows, target trn2, core 0 of 1
//
// // ---- pe: 16 instructions ----
// DRAIN // 0 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 1 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 2 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 3 tests/golden/bundles/branch.cps:12:5
// TENSOR_LOAD dtype=i32 num_elem=[1,1] start=sbuf[p0+0x80] // 4 tests/golden/bundles/branch.cps:12:5
// DRAIN // 5 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 6 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 7 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 8 tests/golden/bundles/branch.cps:12:5
// COMPARE_BRANCH cmp_op=LE_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE branch=5 // 9 tests/golden/bundles/branch.cps:13:5
// DRAIN // 10 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 11 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 12 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 13 tests/golden/bundles/branch.cps:13:5
// NOP // 14 tests/golden/bundles/branch.cps:13:5
// NOP // 15 tests/golden/bundles/branch.cps:13:5
//
// // ---- act: 16 instructions ----
// DRAIN // 0 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 1 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 2 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 3 tests/golden/bundles/branch.cps:12:5
// TENSOR_LOAD dtype=i32 num_elem=[1,1] start=sbuf[p0+0x80] // 4 tests/golden/bundles/branch.cps:12:5
// DRAIN // 5 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 6 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 7 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 8 tests/golden/bundles/branch.cps:12:5
// COMPARE_BRANCH cmp_op=LE_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE branch=5 // 9 tests/golden/bundles/branch.cps:13:5
// DRAIN // 10 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 11 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 12 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 13 tests/golden/bundles/branch.cps:13:5
// NOP // 14 tests/golden/bundles/branch.cps:13:5
// NOP // 15 tests/golden/bundles/branch.cps:13:5
//
// // ---- pool: 18 instructions ----
// PSEUDO_DMA_TRIGGER queue="q_pool_out" wait S[11]>=16 // 0 tests/golden/bundles/branch.cps:11:5
// DRAIN // 1 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 2 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 3 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 4 tests/golden/bundles/branch.cps:12:5
// TENSOR_LOAD dtype=i32 num_elem=[1,1] start=sbuf[p0+0x80] // 5 tests/golden/bundles/branch.cps:12:5
// DRAIN // 6 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 7 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 8 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 9 tests/golden/bundles/branch.cps:12:5
// COMPARE_BRANCH cmp_op=LE_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE branch=6 // 10 tests/golden/bundles/branch.cps:13:5
// PSEUDO_DMA_TRIGGER queue="q_pool_out" block_id=1 // 11 tests/golden/bundles/branch.cps:13:20
// DRAIN // 12 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 13 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 14 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 15 tests/golden/bundles/branch.cps:13:5
// NOP // 16 tests/golden/bundles/branch.cps:13:5
// NOP // 17 tests/golden/bundles/branch.cps:13:5
//
// // ---- dve: 16 instructions ----
// DRAIN // 0 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 1 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 2 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 3 tests/golden/bundles/branch.cps:12:5
// TENSOR_LOAD dtype=i32 num_elem=[1,1] start=sbuf[p0+0x80] // 4 tests/golden/bundles/branch.cps:12:5
// DRAIN // 5 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 6 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 7 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 8 tests/golden/bundles/branch.cps:12:5
// COMPARE_BRANCH cmp_op=LE_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE branch=5 // 9 tests/golden/bundles/branch.cps:13:5
// DRAIN // 10 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE then2 S[10]++@complete // 11 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]>=1 then2 S[4]++@complete // 12 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[3]==0 // 13 tests/golden/bundles/branch.cps:13:5
// NOP // 14 tests/golden/bundles/branch.cps:13:5
// NOP // 15 tests/golden/bundles/branch.cps:13:5
//
// // ---- sp: 27 instructions ----
// PSEUDO_DMA_TRIGGER queue="q_sp_in" // 0 tests/golden/bundles/branch.cps:9:5
// PSEUDO_DMA_TRIGGER queue="q_sp_in" block_id=1 // 1 tests/golden/bundles/branch.cps:10:5
// DRAIN // 2 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[11]>=32 // 3 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[12]>=16 // 4 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[10]>=4 // 5 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=5 last=12 // 6 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[3]++@complete // 7 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[4]>=4 // 8 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=3 last=4 // 9 tests/golden/bundles/branch.cps:12:5
// TENSOR_LOAD dtype=i32 num_elem=[1,1] start=sbuf[p0+0x80] // 10 tests/golden/bundles/branch.cps:12:5
// DRAIN // 11 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[10]>=4 // 12 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=5 last=12 // 13 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE then2 S[3]++@complete // 14 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE wait2 S[4]>=4 // 15 tests/golden/bundles/branch.cps:12:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=3 last=4 // 16 tests/golden/bundles/branch.cps:12:5
// COMPARE_BRANCH cmp_op=LE_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE branch=8 // 17 tests/golden/bundles/branch.cps:13:5
// DRAIN // 18 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[11]>=16 // 19 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[10]>=4 // 20 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=5 last=12 // 21 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE then2 S[3]++@complete // 22 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE wait2 S[4]>=4 // 23 tests/golden/bundles/branch.cps:13:5
// EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=3 last=4 // 24 tests/golden/bundles/branch.cps:13:5
// NOP // 25 tests/golden/bundles/branch.cps:13:5
// NOP // 26 tests/golden/bundles/branch.cps:13:5
