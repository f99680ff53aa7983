extern "C" __global__ void gradsmith_placeholder() {}
