# The tests of convolutions by cuDNN. They need its headers, and are labelled "cuda".
# SPDX-License-Identifier: Apache-2.0
foreach(test dnn plans)
  target_include_directories(test_devices_cuda_${test}_test PRIVATE
                             "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/plugins/devices/cuda")
  target_include_directories(test_devices_cuda_${test}_test SYSTEM PRIVATE ${cuda_plugin})
  target_link_libraries(test_devices_cuda_${test}_test PRIVATE $<TARGET_OBJECTS:tenon_devices_cuda_objects>
                        tenon_device_pointwise ${CMAKE_DL_LIBS})
endforeach()

# Plans of the cuDNN of this machine.
add_test(NAME cuda/devices/cuda_plans_test COMMAND test_devices_cuda_plans_test "--gtest_brief=1")
set_tests_properties(cuda/devices/cuda_plans_test PROPERTIES LABELS "cuda" TIMEOUT 600)

# A library that computes on the CPU, for the emulated GPU.
add_library(test_cuda_dnn SHARED "${CMAKE_CURRENT_LIST_DIR}/cuda_fakes/cudnn.cpp"
            "${PROJECT_SOURCE_DIR}/check/definitions/image_reference.cpp")
set_target_properties(test_cuda_dnn PROPERTIES OUTPUT_NAME cudnn SOVERSION 9 CXX_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY "${fakes}")
target_include_directories(test_cuda_dnn PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/sdk/include")
target_include_directories(test_cuda_dnn SYSTEM PRIVATE ${cuda_plugin})
target_link_libraries(test_cuda_dnn PRIVATE test_cuda_driver)

tenon_cuda_library_test(dnn devices/conv_test -*.Refuses:*.ManyBands)
tenon_cuda_library_test(dnn devices/cuda_dnn_test *)
tenon_cuda_library_test(dnn devices/cuda_machine_test *LeNet)
tenon_cuda_library_test(dnn layers/convolution_test -*.NormalisationIsAnEpilogue long)
