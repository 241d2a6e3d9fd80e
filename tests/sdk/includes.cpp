// Preprocessed by includes.sh with one more header, which is named on the command line.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/base.h>

#include TENON_HEADER
