#!/bin/sh
# run.sh NAME OPTION...: the fuzzer NAME in the build folder that is the working directory, from its
# corpus and with its words. New inputs go to found/NAME, those that fail to found/NAME-*.
#   tests/fuzz/run.sh asm -runs=5000 -seed=1          fixed work: what the suite does
#   tests/fuzz/run.sh asm -max_total_time=1800
set -eu
name=$1
shift
case "$*" in *-runs=*) rm -rf "found/$name" ;; esac # fixed work starts from the same inputs
mkdir -p "found/$name"
[ ! -f "fuzz/$name.dict" ] || set -- -dict="fuzz/$name.dict" "$@"
exec "tests/fuzz_$name" -timeout=60 -rss_limit_mb=3000 -artifact_prefix="found/$name-" \
    -verbosity=0 -print_final_stats=1 "$@" "found/$name" "fuzz/$name"
