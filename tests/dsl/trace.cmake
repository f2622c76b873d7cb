cps_unit(test_trace_view SRCS test_trace_view.c DEPS cps_trace_core)
cps_unit(test_trace_combine SRCS test_trace_combine.c DEPS cps_trace_core)
cps_unit(test_trace_errors SRCS test_trace_errors.c DEPS cps_dsl)
cps_unit(test_trace_golden SRCS test_trace_golden.c DEPS cps_dsl)
