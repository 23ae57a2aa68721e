"""Triton kernels for CUDA devices. To import one of these modules needs Triton, which comes with PyTorch for CUDA."""
