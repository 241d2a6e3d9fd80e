// What every communicator keeps, checked by all ranks of a world at the same time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/comms/rank.h"

namespace tenon_tests {

struct ContractSize {
  uint64_t large = uint64_t{1} << 24;  // bytes of the largest message, at most most_bytes
};

// Throws std::runtime_error at the first thing that is wrong. Ends when all ranks have ended.
void check_contract(Rank& rank, const ContractSize& size = {});

// Waits for all ranks.
void meet(Rank& rank);

}  // namespace tenon_tests
