// Vectors of words: of word2vec, GloVe and fastText. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::weights {

// Which words got a vector, by their numbers.
using Found = std::vector<bool>;

// Reads a file of word vectors once, from its beginning to its end, in memory that does not depend on its length.
// Writes those of `words` into the rows of `table` [words, size]; other rows stay. Of a word that the file has several
// times the first one counts.
//
// The file, gzipped or not, is recognised by what it holds:
//   text       a line for each word: the word, then `size` numbers; before them, of word2vec and fastText's .vec, a
//              line "COUNT SIZE"
//   word2vec   binary: "COUNT SIZE" in a line, then for each word its bytes, a space, and float32 numbers
//   fastText   .bin: words that it lacks get the mean of the vectors of their parts, if it has such
// Throws tenon::Error: TN_NOT_FOUND, TN_IO, TN_BAD_DATA naming file and line or word, and TN_INVALID for vectors of
// another size, always before it returns; then the table may be half written.
[[nodiscard]] Found read_vectors(const std::string& path, const std::vector<std::string>& words, int64_t size,
                                 float* table);

// Returns the lines of a file, gzipped or not, without line ends: a word each.
[[nodiscard]] std::vector<std::string> read_words(const std::string& path);

}  // namespace tenon::weights
