// The hashes of elementary_bits.h from functions whose file is compiled to contract what it can, on x86 with the
// instructions for it. SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/elementary_bits.h"

namespace tenon::tests {

ElementaryHashes contracted_hashes();
ElementaryHashes contracted_hashes() { return elementary_hashes(); }

}  // namespace tenon::tests
