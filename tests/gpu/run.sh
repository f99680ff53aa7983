#!/usr/bin/env bash
# Builds for the GPU of this machine and runs every test that needs one. Logs go to the folder given, or to
# build/gpu-results. Usage: tests/gpu/run.sh [folder] [memcheck|racecheck|initcheck|synccheck ...]
#
# With names of compute-sanitizer's tools, the tests are run under each of them as well: of the generated ones those that
# SANITIZED filters. For more of them than there is time in one go, see tests/gpu/sanitize.py.
set -uo pipefail
cd "$(dirname "$0")/../.."
results=$(realpath -m "${1:-build/gpu-results}")
shift || true
build=build/gpu
mkdir -p "$results"
export GRADSMITH_CACHE=off

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$results/machine.txt"
echo "commit ${COMMIT:-$(git log -1 --format=%H)}" | tee -a "$results/machine.txt"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGRADSMITH_CUDA=ON -DGRADSMITH_WERROR=OFF \
  -DGRADSMITH_BUILD_PYTHON=AUTO "-DGRADSMITH_CUDA_ARCHITECTURES=$capability-real" | grep gradsmith: | tee -a "$results/machine.txt"
ninja -C $build > "$results/build.log" 2>&1 || { grep -E 'error|FAILED' -A5 "$results/build.log" | head -60; exit 1; }
library=$(sed -n 's/^GRADSMITH_CUDNN_LIBRARY:FILEPATH=//p' $build/CMakeCache.txt)
[ -e "$library" ] && export GRADSMITH_CUDNN_LIBRARY=$library

failed=0
run() {  # name, command...
  local name=$1 start=$SECONDS
  shift
  "$@" > "$results/$name.log" 2>&1
  local code=$?
  [ $code -eq 0 ] || failed=1
  printf '%-34s exit %d, %d s: %s\n' "$name" $code $((SECONDS - start)) \
    "$(grep -E '^\[  (PASSED|FAILED|SKIPPED)|ERROR SUMMARY|RACECHECK SUMMARY|[0-9]+ (passed|failed|skipped)' "$results/$name.log" | head -4 | tr '\n' ' ')" |
    tee -a "$results/tally.txt"
  return $code
}
# Three at a time: most of them wait for the host.
shards=()
for shard in 0 1 2; do
  run runtime.$shard env GTEST_TOTAL_SHARDS=3 GTEST_SHARD_INDEX=$shard $build/tests/gradsmith_runtime_tests --gtest_brief=1 &
  shards+=($!)
done
for shard in "${shards[@]}"; do
  wait "$shard" || failed=1
done
run generated.cuda $build/tests/gradsmith_generated_tests --backend=cuda --gtest_brief=1
run generated.kernels $build/tests/gradsmith_kernel_tests --backend=cuda --gtest_brief=1
# The Python package, where there is nanobind; what a test needs and is not there makes it skip.
if [ -d $build/python ]; then
  export PYTHONPATH=$PWD/$build/python
  run python.gpu env GRADSMITH_TEST_PROBLEMS=250 python3 -m pytest tests/python -m gpu -rs
  run python.calls python3 -m pytest tests/python -m 'not gpu' -rs
  run python.cost python3 bench/call_cost.py cuda
fi
# The barriers of cuDNN's kernels are not followed by racecheck, which reports hazards within them: those in ours count.
# Watching ours alone (--kernel-name) ends in an error of the sanitizer's own.
for tool in "$@"; do
  for tests in runtime generated; do
    if [ $tests = runtime ]; then
      command=($build/tests/gradsmith_runtime_tests '--gtest_filter=*Cuda*:TensorOps*:ConvDirect*:*BatchNormOwn*:BatchNormResident*:-*MoreElementsThan32Bits*')
    else
      command=($build/tests/gradsmith_generated_tests --backend=cuda --forget-calls "--gtest_filter=${SANITIZED:-*Exact*_cuda*}")
    fi
    run "$tool.$tests" compute-sanitizer --tool "$tool" --print-limit 1000 "${command[@]}" --gtest_brief=1
    if [ "$tool" = racecheck ] && grep -q 'Race reported.* gradsmith_' "$results/$tool.$tests.log"; then
      echo "$tool.$tests: hazards in kernels of our own" | tee -a "$results/tally.txt"
      failed=1
    fi
  done
done
exit $failed
