# Tracing of leaf bodies, and the registry. What does not need the evaluator stands on its own.
cps_library(cps_trace_core
    SRCS trace_view.c trace_pattern.c trace_graph.c trace_cost.c trace_combine.c trace_rows.c
         trace_select.c
    DEPS cps_ir cps_isa cps_base)
target_sources(cps_dsl PRIVATE
    trace.c trace_storage.c trace_emit.c trace_index.c trace_expr.c trace_assign.c trace_matmul.c
    trace_arrow.c trace_control.c trace_pipeline.c trace_call.c registry.c)
target_link_libraries(cps_dsl PUBLIC cps_trace_core cps_kernels)
