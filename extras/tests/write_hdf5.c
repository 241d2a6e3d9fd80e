/* Writes the files of test_hdf5.py: write_hdf5 FOLDER. SPDX-License-Identifier: Apache-2.0 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 10 };

/* chunk: rows of a chunk, compressed; 0: contiguous. */
static void write(hid_t to, const char* name, hid_t type, int rank, const hsize_t* extents, hsize_t chunk,
                  const void* data) {
  const hid_t space = H5Screate_simple(rank, extents, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  hid_t set;
  hsize_t chunks[3];
  int i;
  for (i = 0; i < rank; ++i) chunks[i] = i == 0 ? chunk : extents[i];
  if (chunk > 0) H5Pset_chunk(creation, rank, chunks);
  if (chunk > 0 && H5Tget_class(type) != H5T_VLEN) H5Pset_deflate(creation, 1);
  set = H5Dcreate2(to, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  if (set < 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) exit(1);
  H5Dclose(set), H5Pclose(creation), H5Sclose(space);
}

static void write_file(const char* folder, const char* name, int first, int rows) {
  const hsize_t vectors[] = {(hsize_t)rows, 2}, images[] = {(hsize_t)rows, 2, 2}, numbers[] = {(hsize_t)rows};
  double x[kRows][2];
  unsigned char image[kRows][2][2];
  int label[kRows], words[kRows][4], i, k;
  signed char flag[kRows];
  unsigned long long big[kRows];
  hvl_t lists[kRows];
  char path[4096];
  const hid_t truth = H5Tenum_create(H5T_NATIVE_INT8), list = H5Tvlen_create(H5T_NATIVE_INT);
  hid_t file, group;
  signed char no = 0, yes = 1;
  H5Tenum_insert(truth, "FALSE", &no), H5Tenum_insert(truth, "TRUE", &yes);
  for (i = 0; i < rows; ++i) {
    const int number = first + i;
    x[i][0] = number / 2.0, x[i][1] = 1.5;
    for (k = 0; k < 4; ++k) image[i][k / 2][k % 2] = (unsigned char)(number + k), words[i][k] = k;
    label[i] = -number, flag[i] = (signed char)(number % 2),
    big[i] = number == 9 ? 1ULL << 63 : (unsigned long long)number;
    lists[i].len = (size_t)(number % 4), lists[i].p = words[i];
  }
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) exit(1);
  write(file, "x", H5T_NATIVE_DOUBLE, 2, vectors, 0, x);
  write(file, "image", H5T_NATIVE_UCHAR, 3, images, 2, image);
  write(file, "label", H5T_NATIVE_INT, 1, numbers, 3, label);
  write(file, "flag", truth, 1, numbers, 0, flag);
  group = H5Gcreate2(file, "more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  write(group, "words", list, 1, numbers, 0, lists);
  write(group, "big", H5T_NATIVE_ULLONG, 1, numbers, 0, big);
  write(group, "few", H5T_NATIVE_INT, 1, (const hsize_t[]){1}, 0, label);
  write(group, "text", H5T_C_S1, 1, numbers, 0, flag);
  H5Gclose(group), H5Fclose(file);
}

int main(int arguments, char** argument) {
  if (arguments < 2) return 64;
  write_file(argument[1], "a.h5", 0, 6);
  write_file(argument[1], "b.h5", 6, 4);
  write_file(argument[1], "all.hdf5", 0, 10);
  return 0;
}
