// Every function of the public API with null, zeroed, stale and foreign handles, null pointers, structs without a size
// and calls out of order. The cases are generated from the headers (generate.py). SPDX-License-Identifier: Apache-2.0
#include "tests/host/api/misuse/misuse.h"

namespace tenon_tests {
namespace {

class MisuseTest : public testing::TestWithParam<MisuseCase> {};

TEST_P(MisuseTest, IsRefusedAndChangesNothing) {
  const World world, other;
  GetParam().run(world, other);
}

INSTANTIATE_TEST_SUITE_P(Api, MisuseTest, testing::ValuesIn(misuse_cases()),
                         [](const auto& tested) { return std::string(tested.param.function); });

}  // namespace
}  // namespace tenon_tests
