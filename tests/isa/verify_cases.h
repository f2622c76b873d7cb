/* One line of .cas text for each rule of the verifier that it breaks, and lines just inside
 * that pass. */
#ifndef CPS_TESTS_ISA_VERIFY_CASES_H
#define CPS_TESTS_ISA_VERIFY_CASES_H

#include "codegen/isa/verify.h"

#define PASSES CPS_RULES

#define MM "MATMUL src=bf16@sbuf[p0][1][512] num_active_rows=128 num_active_cols=128 "
#define AC "ACTIVATE exp src=fp32@sbuf[p0][1][8] scale=1.0 "
#define TT "TENSOR_TENSOR_ARITH ch=128 "

#define LWX "LDWEIGHTS_MX num_active_rows=32 num_active_cols=32 row_grp=0x1 "

static const struct {
    const char *line;
    cps_gen g;
    cps_engine e;
    cps_rule rule;
} cases[] = {
    // header and engine
    {"NOP hdr.inst_word_len=0x20", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_LENGTH},
    {"COPY hdr.inst_word_len=0x11 src=bf16@sbuf[p0][1][8] ch=1 dst=bf16@sbuf[p0][1][8]", CPS_V3,
     CPS_ENGINE_ANY, CPS_RULE_LENGTH},
    {"NOP", CPS_V3, CPS_SP, PASSES},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, PASSES},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_ACT,
     CPS_RULE_ENGINE},
    {"RANGE_SELECT", CPS_V2, CPS_ENGINE_ANY, CPS_RULE_OPCODE},
    {".bytes "
     "00100000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000",
     CPS_V3, CPS_ENGINE_ANY, CPS_RULE_OPCODE},
    // sync
    {"NOP hdr.wait_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_WAIT_MODE},
    {"NOP hdr.update_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_UPDATE_MODE},
    {"EVENT_SEMAPHORE wait_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_WAIT_MODE},
    {"NOP wait S[3]>=4 then S[4]+=4@complete", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_SHARED},
    {"NOP wait S[3]>=4 then S[4]++@complete", CPS_V3, CPS_ENGINE_ANY, PASSES},
    {"NOP hdr.semaphore_value=4", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_UNUSED},
    {"NOP then S[4]+=r4@read", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_SEEN},
    {"EVENT_SEMAPHORE wait S[1]>=1 wait2 S[2]>=1", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_TWICE},
    {"EVENT_SEMAPHORE wait S[1]>=1 then2 S[2]+=3@complete", CPS_V3, CPS_ENGINE_ANY, PASSES},
    // bytes and fields
    {"NOP raw[20]=1", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_RESERVED},
    {"DRAIN raw[20]=1", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_RESERVED},
    {MM "xbus_sel=0x10 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_RULE_RESERVED},
    {"MOVE num_mov=1 dtype=i32 source=7", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_ENUM},
    {"MOVE num_mov=9 dtype=i32", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_RANGE},
    {"ACTIVATE activation_function=0xf src=fp32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_ACT, CPS_RULE_FUNCTION},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][32] ch=33 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, CPS_RULE_MULTIPLE},
    {TT "op=abs_max src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_OPERATOR},
    // dtypes
    {AC "ch=1 dst=tf32@sbuf[p0][1][8]", CPS_V3, CPS_ACT, PASSES},
    {"CAST src=tf32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_DTYPE},
    {"CAST src=u64@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_DTYPE},
    {"COPY src=u64@sbuf[p0][1][8] ch=1 dst=u64@sbuf[p0][1][8]", CPS_V3, CPS_DVE, PASSES},
    {"COPY src=bf16@sbuf[p0][1][8] ch=1 dst=fp16@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_SAME},
    {AC "ch=1 dst=bf16@psum[p0][1][8]", CPS_V3, CPS_ACT, CPS_RULE_PSUM_STORE},
    {"COPY src=0x17@sbuf[p0][1][8] ch=1 dst=0x17@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_DTYPE},
    {MM "row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_RULE_PSUM_STORE},
    {MM "row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V4, CPS_PE, PASSES},
    {MM "transpose_mode=1 row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V3, CPS_PE,
     PASSES},
    // addresses and patterns
    {"COPY src=fp32@sbuf[p0+0x2][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_ALIGN},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=mult imm0=ptr[0x2] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_POINTER},
    {"COPY src=fp32@sbuf[p0][1][0] ch=1 dst=fp32@sbuf[p0][1][0]", CPS_V3, CPS_DVE,
     CPS_RULE_DIMENSION},
    {"COPY src=fp32@sbuf[p0+0x2fff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V2, CPS_DVE,
     CPS_RULE_BOUNDS},
    {"COPY src=fp32@sbuf[p0+0x2fff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     PASSES},
    {"COPY src=fp32@sbuf[p0][-1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_BOUNDS},
    {"COPY src=fp32@psum[p0+0x3ff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_BOUNDS},
    {"COPY src=fp32@0x3000000[1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_SPACE},
    {"COPY src=fp32@0x20000000[1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_INDIRECT},
    {"COPY src=fp32@reg[5][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, PASSES},
    {"COPY src=fp32@0x40000000[1][0] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, PASSES},
    // partitions and memories
    {"COPY src=fp32@sbuf[p16][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_START},
    {"COPY src=fp32@sbuf[p64][1][8] ch=65 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_START},
    {"COPY src=fp32@sbuf[p96][1][8] ch=32 dst=fp32@sbuf[p32][1][8]", CPS_V3, CPS_DVE, PASSES},
    {"COPY src=fp32@sbuf[p0][1][8] ch=129 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_CHANNELS},
    {"COPY src=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_CHANNELS},
    {TT "op=add src0=fp32@psum[p0][1][8] src1=fp32@psum[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_TWO_PSUM},
    {"TENSOR_TENSOR_ARITH ch=32 op=add src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p32][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V2, CPS_DVE, CPS_RULE_TWO_GROUPS},
    {"TENSOR_TENSOR_ARITH ch=32 op=add src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p32][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_TWO_GROUPS},
    {"COPY src=fp32@psum[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_POOL,
     CPS_RULE_POOL_PSUM},
    {"MATMUL src=bf16@psum[p0][1][8] num_active_rows=128 num_active_cols=128 row_grp=0xf "
     "col_grp=0xf dst=psum[p0][1][8]",
     CPS_V3, CPS_PE, CPS_RULE_PLACE},
    {MM "row_grp=0xf col_grp=0xf dst=fp32@sbuf[p0][1][512]", CPS_V3, CPS_PE, CPS_RULE_PLACE},
    // operators
    {TT
     "op=bitwise_and src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_CLASS},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=divide imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_POOL_ONLY},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=divide imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, PASSES},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op1=add dst=fp32@sbuf[p0][1][8]", CPS_V3,
     CPS_DVE, CPS_RULE_BYPASS},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=rsqrt op1=add "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_RSQRT},
    {TT "op=add_int src0=i32@sbuf[p0][1][8] src1=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, PASSES},
    {TT "op=add_int src0=i32@sbuf[p0][1][8] src1=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_POOL_ONLY},
    // counts
    {"COPY src=fp32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][9]", CPS_V3, CPS_DVE,
     CPS_RULE_COUNT},
    {"COPY src=fp32@sbuf[p0][1,4][4,2] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, PASSES},
    {"TENSOR_REDUCE_ARITH src=fp32@sbuf[p0][1,8][8,4] ch=1 op=add op_dim=X "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_COUNT},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][7]", CPS_V3, CPS_DVE,
     CPS_RULE_ELEMENTS},
    {"MAX8 src=fp32@sbuf[p0][1][7] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_ELEMENTS},
    {"BATCH_NORM_STATS2 src=fp32@sbuf[p0][1][513] ch=8 dst=fp32@sbuf[p0][1][6]", CPS_V3,
     CPS_DVE, CPS_RULE_ELEMENTS},
    {"BATCH_NORM_AGGREGATE src=fp32@sbuf[p0][1][7] ch=8 dst=fp32@sbuf[p0][1][2]", CPS_V3,
     CPS_DVE, CPS_RULE_COUNT},
    {"MEMSET dst_element_count=9 ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_COUNT},
    {"NONZERO_WITH_COUNT ch=1 src=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8] in_dtype=i32",
     CPS_V3, CPS_POOL, CPS_RULE_COUNT},
    {"CROSS_LANE_REDUCE_ARITH src=fp32@sbuf[p0][1][8] ch=128 reduce_axis=PARTITIONS "
     "dst=fp32@sbuf[p0][1][1]",
     CPS_V3, CPS_POOL, CPS_RULE_COUNT},
    {"MEMSET dst_element_count=8 ch=1 set_value=0x10000 dst=bf16@sbuf[p0][1][8]", CPS_V3,
     CPS_DVE, CPS_RULE_SET_VALUE},
    {"LDWEIGHTS src=bf16@sbuf[p0][1][64] num_active_rows=128 num_active_cols=128 row_grp=0xf "
     "col_grp=0xf",
     CPS_V3, CPS_PE, CPS_RULE_COUNT},
    {"LDWEIGHTS src=fp8e4m3@sbuf[p0][1,128][128,2] perf_opt=DOUBLE_ROW num_active_rows=128 "
     "num_active_cols=128 row_grp=0xf col_grp=0xf",
     CPS_V3, CPS_PE, PASSES},
    {"DMA_MEMCPY src_num_elem=[4,1] src_elem_size=4 dst_num_elem=[2,1] dst_elem_size=4", CPS_V3,
     CPS_SP, CPS_RULE_DMA_BYTES},
    {"DMA_MEMCPY src_num_elem=[4,1] src_elem_size=4 dst_num_elem=[2,2] dst_elem_size=4", CPS_V3,
     CPS_SP, PASSES},
    {"RANGE_SELECT ch=1 fill=0x0 reduce_op=max comp_op0=is_ge comp_op1=is_lt "
     "src=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_RANGE},
    {"FIND_INDEX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_TAGS},
    {"TENSOR_SCALAR_CACHE_REDUCE accumulator_cmd=ZERO_ACCUMULATE src=i32@sbuf[p0][1][8] ch=1 "
     "op1=add "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_TAGS},
    {"COPY_PREDICATED ch=1 src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_TAGS},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][33] ch=32 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, CPS_RULE_COUNT},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][64] ch=32 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, PASSES},
    {"TENSOR_LOAD dtype=i32 num_elem=[8,5]", CPS_V3, CPS_SP, CPS_RULE_TRANSFER},
    {"TENSOR_LOAD dtype=i32 num_elem=[8,4]", CPS_V3, CPS_SP, PASSES},
    {"EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=9 last=8", CPS_V3, CPS_SP, CPS_RULE_CLEAR},
    // joined fields
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=rsqrt imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_RSQRT},
    {"TENSOR_SCALAR_BITVEC src=u16@sbuf[p0][1][8] ch=1 op0=arith_shift_right imm0=0x2 "
     "dst=u16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_SHIFTS},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] op0=add op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, CPS_RULE_OP_PAIR},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] op0=mult op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, PASSES},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] reduce_cmd=REDUCE op0=mult op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, CPS_RULE_REDUCE_OP},
    // PE
    {MM "row_grp=0x5 col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE, CPS_RULE_GROUP},
    {MM "row_grp=0x3 col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE, CPS_RULE_GROUP},
    {MM "fp32_mode=LOW_HIGH row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_RULE_FP32_MODE},
    {MM "psum_accumulate_flags=0x4 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3,
     CPS_PE, CPS_RULE_ACCUMULATE},
    {MM "psum_accumulate_flags=0x4 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V4,
     CPS_PE, PASSES},
    {MM "row_grp=0xf col_grp=0xf dst=psum[p0+0x400][1][512]", CPS_V3, CPS_PE,
     CPS_RULE_ZERO_REGION},
    {"MATMUL src=bf16@sbuf[p32][1][64] num_active_rows=32 num_active_cols=32 row_grp=0x1 "
     "col_grp=0x1 dst=psum[p0][1][64]",
     CPS_V3, CPS_PE, CPS_RULE_GROUP},
    {MM "row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V2, CPS_PE, CPS_RULE_XBUS},
    // rules of the rows, one line at least for each
    {"TENSOR_DEQUANTIZE src=u32@sbuf[p0][1][8] ch=1 dequant_fmt=FP4_E5M2 "
     "dst=u32@sbuf[p0+0x100][1][16]",
     CPS_V2, CPS_POOL, CPS_RULE_REFUSED},
    {"TENSOR_DEQUANTIZE src=u32@sbuf[p0][1][8] ch=1 dequant_fmt=FP4_E5M2 "
     "dst=u32@sbuf[p0+0x100][1][16]",
     CPS_V3, CPS_POOL, PASSES},
    {"QUANTIZE_MX hdr.inst_word_len=0x11 src=bf16@sbuf[p0][1][8] ch=32 "
     "dst=fp8e5m2@sbuf[p0]*sbuf[p0][8,1,0]",
     CPS_V4, CPS_DVE, PASSES},
    {"NOP wait S[3]>=r64", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_REG},
    {"NOP then S[3]=r64@complete", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_REG},
    {"NOP wait S[3]>=r63", CPS_V3, CPS_ENGINE_ANY, PASSES},
    {"EVENT_SEMAPHORE sem_wait_value=3", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_UNUSED},
    {"EVENT_SEMAPHORE sem_update_value=3", CPS_V3, CPS_ENGINE_ANY, CPS_RULE_SYNC_UNUSED},
    {"TENSOR_SCALAR_SELECT src0=bf16@sbuf[p0][1][8] ch=1 src1_imm=bf16@0x0 pred_imm=u32@0x1 "
     "dst=bf16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_WIDTH},
    {"TENSOR_SCALAR_SELECT src0=bf16@sbuf[p0][1][8] ch=1 src1_imm=bf16@0x0 pred_imm=u16@0x2 "
     "dst=bf16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_PREDICATE},
    {"TENSOR_SCALAR_SELECT src0=bf16@sbuf[p0][1][8] ch=1 src1_imm=bf16@0x0 "
     "pred_imm=u16@ptr[0x2] dst=bf16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, PASSES},
    {"DMA_TRANSPOSE in_dtype=bf16 out_dtype=bf16 dst=0x100000010 tile_cols=64", CPS_V3, CPS_SP,
     CPS_RULE_ALIGN8},
    {"DMA_TRANSPOSE in_dtype=bf16 out_dtype=bf16 dst=reg[1,2] tile_cols=64", CPS_V3, CPS_SP,
     PASSES},
    {"DMA_TRANSPOSE in_dtype=fp32 out_dtype=fp32 tile_cols=65", CPS_V3, CPS_SP,
     CPS_RULE_TILE_COLS},
    {"DMA_TRANSPOSE in_dtype=bf16 out_dtype=bf16 tile_cols=129", CPS_V3, CPS_SP,
     CPS_RULE_TILE_COLS},
    {"DMA_MEMCPY dma_configs=0x8 src_num_elem=[1,1] dst_num_elem=[1,1]", CPS_V3, CPS_SP,
     CPS_RULE_FLAGS},
    {"TENSOR_SCALAR_AFFINE_SELECT ch=1 fill_reg=64 mask=0[1][8] src=fp32@sbuf[p0][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, CPS_RULE_REGISTER},
    {"MOVE num_mov=1 dtype=i32 src_regs=[129] dst_regs=[2]", CPS_V3, CPS_SP, PASSES},
    {"MOVE num_mov=1 dtype=i32 src_regs=[1] dst_regs=[128]", CPS_V3, CPS_SP, CPS_RULE_REGISTER},
    {"PSEUDO_DMA_TRIGGER queue=\"01234567890123456789012345678901\"", CPS_V3, CPS_SP,
     CPS_RULE_NAME},
    {"PSEUDO_DMA_TRIGGER queue=0x610062", CPS_V3, CPS_SP, CPS_RULE_NAME},
    {"PSEUDO_DMA_TRIGGER queue=\"0123456789012345678901234567890\"", CPS_V3, CPS_SP, PASSES},
    {"ENGINE_NOP immediate=0x0001", CPS_V3, CPS_DVE, CPS_RULE_ZERO},
    {"DROPOUT src=bf16@sbuf[p0][1][8] ch=1 threshold=bf16@0.5 dst=bf16@sbuf[p0][1][8]", CPS_V3,
     CPS_DVE, CPS_RULE_THRESHOLD},
    {"DROPOUT src=bf16@sbuf[p0][1][8] ch=1 threshold=bf16@ptr[0x40] dst=bf16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, PASSES},
    {"BATCH_NORM_GRAD_ACCUMULATE2 src0=bf16@sbuf[p0][1][8] src1=bf16@sbuf[p0][1][8] "
     "dst=fp32@sbuf[p0][1][3] imm0_imm1_src=IMM0:1 ch=1",
     CPS_V3, CPS_DVE, CPS_RULE_POINTERS},
    {"BATCH_NORM_GRAD_ACCUMULATE2 src0=bf16@sbuf[p0][1][8] src1=bf16@sbuf[p0][1][9] "
     "dst=fp32@sbuf[p0][1][3] imm0_imm1_src=IMM0:1|IMM1:1 ch=1",
     CPS_V3, CPS_DVE, CPS_RULE_COUNT},
    {"BATCH_NORM_GRAD_ACCUMULATE2 src0=bf16@sbuf[p0][1][8] src1=bf16@sbuf[p0][1][8] "
     "dst=fp32@sbuf[p0][1][4] imm0_imm1_src=IMM0:1|IMM1:1 ch=1",
     CPS_V3, CPS_DVE, CPS_RULE_ELEMENTS},
    {"TENSOR_SCALAR_PTR_MULTI_ARITH src=fp32@sbuf[p0][1,1,1,8][8,1,1,9] ch=1 op=mult "
     "dst=fp32@sbuf[p0][1][72]",
     CPS_V3, CPS_DVE, CPS_RULE_SCALARS},
    {"TENSOR_SCALAR_PTR_MULTI_ARITH src=fp32@sbuf[p0][1,1,1,8][8,1,1,8] ch=1 op=mult "
     "dst=fp32@sbuf[p0][1][64]",
     CPS_V3, CPS_DVE, PASSES},
    {"LOAD_MASK_SELECT immediate=0x0040", CPS_V3, CPS_DVE, CPS_RULE_LANES},
    {"LOAD_MASK_SELECT immediate=0x003fff", CPS_V3, CPS_DVE, PASSES},
    {"TENSOR_SCALAR_ADDR src=i32@sbuf[p0][1][8] op0=add op1=add ch=1 dst=u64@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, CPS_RULE_ADDR_FORM},
    {"TENSOR_SCALAR_ADDR src=i32@sbuf[p0][1][8] op0=add ch=1 dst=u64@sbuf[p0][1][8]", CPS_V3,
     CPS_POOL, PASSES},
    {"INDIRECT_COPY src_idx=sbuf[p0] src=bf16@sbuf[p0] src_num_elem=16 ch=16 "
     "src_num_elem_per_idx=1 src_buffer_size=8 dst=bf16@sbuf[p0][1][16]",
     CPS_V3, CPS_POOL, CPS_RULE_INDEXED},
    {"INDIRECT_COPY src_idx=index:sbuf[p0] src=bf16@sbuf[p0] src_num_elem=4097 ch=16 "
     "src_num_elem_per_idx=1 src_buffer_size=8 dst=bf16@sbuf[p0][1][16]",
     CPS_V3, CPS_POOL, CPS_RULE_COUNT},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=mult imm0=ptr[0x40000] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_POINTER_END},
    {"COPY src=fp32@index:sbuf[p0]->sbuf[p0][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_RULE_INDIRECT},
    {"COPY src=fp32@index:sbuf[p0]->sbuf[p0][0] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V4, CPS_DVE,
     CPS_RULE_INDIRECT},
    {"COPY src=fp32@index:sbuf[p0]->sbuf[p0][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V4, CPS_DVE,
     PASSES},
    {"DVE_READ_ACCUMULATOR dst_element_count=1 ch=1 dst=fp32@index:sbuf[p0][1][1]", CPS_V4,
     CPS_DVE, CPS_RULE_INDIRECT},
    {"COPY src=fp32@index:sbuf[p16]->sbuf[p0][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V4, CPS_DVE,
     CPS_RULE_INDEX_START},
    {"COPY src=fp32@index:psum[p0]->sbuf[p0][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V4, CPS_DVE,
     CPS_RULE_INDEX_START},
    {"COPY src=fp32@index:sbuf[p0]->0x3000000[8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V4, CPS_DVE,
     CPS_RULE_SPACE},
    {LWX "src=fp8e5m2@sbuf[p0]*sbuf[p0][0,1,0]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0]*sbuf[p0][64,2,0]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0]*psum[p0][64,1,0]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0]*sbuf[p0][64,1,16]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0]*sbuf[p0][64,1,6]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0]*sbuf[p0][64,1,0,0x1]", CPS_V4, CPS_PE, CPS_RULE_MX_PATTERN},
    {LWX "src=fp8e5m2@sbuf[p0+0x2]*sbuf[p0][64,1,0]", CPS_V4, CPS_PE, CPS_RULE_ALIGN},
    {LWX "src=fp4e2m1_x4@sbuf[p0+0x2]*sbuf[p0][64,1,0]", CPS_V4, CPS_PE, PASSES},
    {LWX "src=bf16@sbuf[p0]*sbuf[p0][64,1,0]", CPS_V4, CPS_PE, CPS_RULE_TAGS},
    {"DMA_MEMCPY compute_op=ADD src=0x100000002 src_num_elem=[1,1] src_elem_size=4 "
     "dst_num_elem=[1,1] dst_elem_size=4 in_dtype=fp32 out_dtype=fp32",
     CPS_V3, CPS_SP, CPS_RULE_DMA_ALIGN},
    {"DMA_MEMCPY src=0x100000002 src_num_elem=[1,1] src_elem_size=4 dst_num_elem=[1,1] "
     "dst_elem_size=4 in_dtype=fp32 out_dtype=fp32",
     CPS_V3, CPS_SP, PASSES},
    {"DMA_GATHER_TRANSPOSE dtype=fp32/bf16 src_num_elem=[8,16]", CPS_V3, CPS_SP,
     CPS_RULE_DMA_DTYPE},
    {"DMA_GATHER_TRANSPOSE dtype=bf16/bf16 src_num_elem=[8,8]", CPS_V3, CPS_SP,
     CPS_RULE_DMA_DTYPE},
    {"DMA_GATHER_TRANSPOSE dtype=bf16/fp16 src_num_elem=[8,16]", CPS_V3, CPS_SP, PASSES},
    {"TENSOR_DEQUANTIZE src=u32@sbuf[p0][1][8] ch=1 dequant_fmt=FP6_E4M3 "
     "dst=u32@sbuf[p0][1][16]",
     CPS_V3, CPS_POOL, CPS_RULE_DEQUANT},
    {"TENSOR_DEQUANTIZE src=u32@sbuf[p0][1][6] ch=1 dequant_fmt=FP6_E4M3 "
     "dst=u32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, PASSES},
    {"SORT ch=64 comparison=is_lt src=fp32@sbuf[p0][1][33] dst=fp32@sbuf[p0][1,2][2,33]",
     CPS_V3, CPS_POOL, CPS_RULE_SORT_SIZE},
    {"SORT ch=64 comparison=is_lt src=bf16@sbuf[p0][1][33] dst=bf16@sbuf[p0][1,2][2,33]",
     CPS_V3, CPS_POOL, PASSES},
    {"SORT ch=64 comparison=is_lt src=bf16@sbuf[p0][1][33] dst=bf16@sbuf[p0][1][66]", CPS_V3,
     CPS_POOL, CPS_RULE_SORT_SIZE},
    {"TENSOR_STORE dtype=u32 src_datasrc=IMMEDIATE num_elem=[9,1]", CPS_V3, CPS_SP,
     CPS_RULE_TRANSFER},
    {"TENSOR_STORE dtype=u32 src_datasrc=IMMEDIATE num_elem=[8,1]", CPS_V3, CPS_SP, PASSES},
    {"TENSOR_LOAD dtype=u64 num_elem=[2,1] data=0x0203", CPS_V3, CPS_SP, CPS_RULE_TRANSFER},
    {"TENSOR_LOAD dtype=u32 num_elem=[2,1] data=0x0240", CPS_V3, CPS_SP, CPS_RULE_TRANSFER},
    {"TENSOR_LOAD dtype=u32 src_datasrc=IMMEDIATE num_elem=[2,1]", CPS_V3, CPS_SP,
     CPS_RULE_ONE_OF},
    {"MATMUL src=bf16@sbuf[p96][1][8] num_active_rows=32 num_active_cols=32 row_grp=0x8 "
     "col_grp=0x8 xbus_sel=0x1 dst=psum[p96][1][8]",
     CPS_V2, CPS_PE, CPS_RULE_XBUS},
    {"MATMUL_SPARSE src=bf16@sbuf[p0][1][8] out_dtype=fp32 num_active_rows=128 "
     "num_active_cols=128 row_grp=0x5 dst=psum[p0][1][8]",
     CPS_V3, CPS_PE, CPS_RULE_GROUP},
    {"EXTENDED_INST ext_opcode=SB2SB completion_info=3 raw[20]=0x1", CPS_V3, CPS_POOL, PASSES},
    {"EXTENDED_INST ext_opcode=TENSOR_TENSOR_ARITH op=add src0=fp32@sbuf[p0][1][8] "
     "src1=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8] raw[60]=0x1",
     CPS_V3, CPS_POOL, CPS_RULE_RESERVED},
    {"TENSOR_REDUCE_ARITH src=u64@sbuf[p0][1][8] ch=1 op=add op_dim=X dst=u64@sbuf[p0][1][1]",
     CPS_V3, CPS_DVE, PASSES},
    {"TENSOR_CUMULATIVE_ARITH src=u64@sbuf[p0][1][8] ch=1 op=add op_dim=X "
     "dst=u64@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_RULE_DTYPE},
};

/* Streams: findings of step 10. */
#define MMS                                                                                    \
    "MATMUL src=bf16@sbuf[p0][1][8] num_active_rows=128 num_active_cols=128 row_grp=0xf "      \
    "col_grp=0xf "
static const struct {
    const char *text;
    cps_gen g;
    cps_rule rule;
} streams[] = {
    {MMS "psum_accumulate_flags=START dst=psum[p0][1][8]\n" MMS "dst=psum[p0][1][8]\n" MMS
         "psum_accumulate_flags=END dst=psum[p0][1][8]",
     CPS_V3, PASSES},
    {MMS "psum_accumulate_flags=START|END dst=psum[p0][1][8]\n" MMS
         "psum_accumulate_flags=START|END dst=psum[p0][1][8]",
     CPS_V3, PASSES},
    {MMS "psum_accumulate_flags=START dst=psum[p0][1][8]\n" MMS
         "psum_accumulate_flags=START dst=psum[p0+0x800][1][8]\n" MMS
         "psum_accumulate_flags=END dst=psum[p0][1][8]\n" MMS
         "psum_accumulate_flags=END dst=psum[p0+0x800][1][8]",
     CPS_V3, PASSES},
    {MMS "dst=psum[p0][1][8]", CPS_V3, CPS_RULE_PSUM_OPEN},
    {MMS "psum_accumulate_flags=ACCUMULATE dst=psum[p0][1][8]", CPS_V4, PASSES},
    {MMS "psum_accumulate_flags=START dst=psum[p0][1][8]", CPS_V3, CPS_RULE_PSUM_LEFT},
    {MMS "psum_accumulate_flags=START dst=psum[p0][1][8]\n" MMS
         "psum_accumulate_flags=START|END dst=psum[p0+0x100][1][8]",
     CPS_V3, CPS_RULE_PSUM_AGAIN},
    {MMS "psum_accumulate_flags=START dst=psum[p0][1][8]\nCOMPARE_BRANCH "
         "target_mode=RELATIVE_IMMEDIATE branch=-1",
     CPS_V3, PASSES},
    {"COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=2", CPS_V3, CPS_RULE_TARGET},
    {"COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=-1", CPS_V3, CPS_RULE_TARGET},
    {"COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=1", CPS_V3, PASSES},
    {"PSEUDO_DMA_DIRECT2D dge_opcode=DMA_TRANSPOSE\nNOP", CPS_V3, CPS_RULE_FOLLOWS},
    {"PSEUDO_DMA_DIRECT2D dge_opcode=DMA_TRANSPOSE\nPSEUDO_EXTENSION", CPS_V3, PASSES},
    {"CUSTOM_OP_HEADER num_payloads=2\nCUSTOM_OP_PAYLOAD", CPS_V3, CPS_RULE_FOLLOWS},
    {"CUSTOM_OP_HEADER num_payloads=2\nCUSTOM_OP_PAYLOAD\nCUSTOM_OP_PAYLOAD", CPS_V3, PASSES},
    {"PSEUDO_TRIGGER_COLLECTIVE2 ctype=ALL_REDUCE", CPS_V3, CPS_RULE_FOLLOWS},
};

#endif
