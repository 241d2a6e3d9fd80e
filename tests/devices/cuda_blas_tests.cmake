# The tests of products by cublasLt, on the emulated GPU with a library that computes on the CPU. They need the headers of
# cuBLAS, and are labelled "cuda". SPDX-License-Identifier: Apache-2.0
add_library(test_cuda_blas SHARED "${CMAKE_CURRENT_LIST_DIR}/cuda_fakes/cublaslt.cpp")
set_target_properties(test_cuda_blas PROPERTIES OUTPUT_NAME cublasLt SOVERSION 13 CXX_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY "${fakes}")
target_include_directories(test_cuda_blas SYSTEM PRIVATE ${cuda_plugin})
target_link_libraries(test_cuda_blas PRIVATE test_cuda_driver)

# Left out: what only the cpu refuses or promises; factors in bfloat16, whose rounding cuda_blas_test knows.
tenon_cuda_library_test(blas devices/gemm_test -*.RefusesNegativeAndImmenseSizes:*.ManyAtOnce:*.SmallOnesAtOnce:*Bfloat16* long)
tenon_cuda_library_test(blas devices/cuda_blas_test *)
tenon_cuda_library_test(blas devices/cuda_calls_test *)
tenon_cuda_library_test(blas devices/cuda_capture_test *)
tenon_cuda_library_test(blas devices/cuda_machine_test *)
tenon_cuda_library_test(blas host/machine/sequences_test * long)
tenon_cuda_library_test(blas host/training/updater_test * long)
