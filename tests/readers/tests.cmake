# The tests of the readers. SPDX-License-Identifier: Apache-2.0
tenon_test(readers/csv_fields_test)
tenon_test(readers/csv_forms_test)
tenon_test(readers/csv_missing_test)
tenon_test(readers/csv_models_test)
tenon_test(readers/csv_sequences_test)
tenon_test(readers/csv_test)
tenon_test(readers/files_fuzz_test)
target_link_libraries(test_readers_files_fuzz_test PRIVATE turbojpeg png) # it makes small pictures
tenon_test(readers/idx_test)
tenon_test(readers/images_samples_test)
target_link_libraries(test_readers_images_samples_test PRIVATE png) # it makes small pictures
tenon_test(readers/images_test)
target_link_libraries(test_readers_images_test PRIVATE turbojpeg png) # it makes small pictures
tenon_test(readers/libsvm_test)
tenon_test(readers/limits_test)
tenon_test(readers/names_test)
tenon_test(readers/npy_test)
tenon_test(readers/other_data_test)
tenon_test(readers/record_index_test)
target_link_libraries(test_readers_record_index_test PRIVATE tenon_reader_files)
tenon_test(readers/source_test)
target_link_libraries(test_readers_source_test PRIVATE tenon_reader_files)
tenon_test(readers/text_test)
