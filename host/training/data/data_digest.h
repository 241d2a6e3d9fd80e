// The digest of the data that a training reads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "host/readers/reader.h"
#include "host/training/checkpoint_record.h"

namespace tenon::host {

using namespace core;

// Returns XXH3 of samples: of every column's values, offsets and ids, in the order of the slots.
[[nodiscard]] std::string digest_of(const SampleBlock& samples);

// Returns XXH3 of a text.
[[nodiscard]] std::string digest_of(const std::string& text);

// Return XXH3 of the values of one parameter or buffer, and of all.
[[nodiscard]] std::string digest_of(const ParameterSet& set, const ParameterEntry& entry);
[[nodiscard]] std::string digest_of(const ParameterSet& set);

// Reads the first minibatch of the pass of a digest again and returns its digest now; empty if the reader cannot seek.
// samples: of the minibatch, if its number was another one: then that of so many samples, or empty if the reader drops
// some of them at the end of the pass; else 0. Moves the reader.
[[nodiscard]] std::optional<std::string> digest_again(Reader& reader, const DataDigest& digest,
                                                      const std::shared_ptr<Allocator>& allocator, int64_t samples = 0);

}  // namespace tenon::host
