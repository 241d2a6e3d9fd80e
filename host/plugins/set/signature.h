// Signatures of plugins: Ed25519 over the SHA-256 of a file, in a file of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "core/system.h"

namespace tenon::host {

using namespace core;

// Returns the file of a file's signature: its name and ".sig".
[[nodiscard]] std::filesystem::path signature_file(const std::filesystem::path& file);

// Writes a new secret key, readable by its owner alone, and its public key. TN_INVALID if one of the files exists.
void create_key(const std::filesystem::path& secret, const std::filesystem::path& public_key);

// Returns the bytes of a public key file. TN_BAD_CONFIG if it is not one.
[[nodiscard]] std::string read_public_key(const std::filesystem::path& file, FileSystem& files);

// Writes the signature of `file` beside it. TN_REFUSED if others than its owner may read the secret key; TN_BAD_CONFIG
// if it is not one. Runs no code of the file.
void sign(const std::filesystem::path& file, const std::filesystem::path& secret, FileSystem& files);

// Returns the bytes of the signature of `file`. TN_REFUSED if there is none or it is malformed.
[[nodiscard]] std::string read_signature(const std::filesystem::path& file, FileSystem& files);

// Whether `signature` is that of the key for a file with this SHA-256, in hex.
[[nodiscard]] bool is_signed(const std::string& sha256, const std::string& signature, const std::string& public_key);

// Returns the SHA-256 of a whole file in hex.
[[nodiscard]] std::string digest_of(InputFile& file);

}  // namespace tenon::host
