// The tables of the device "far". SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::far {

// Returns the ids of all tables, with null at the end.
const char* const* table_ids();
// Returns the table of an id, or null.
const void* table(const char* id);

}  // namespace tenon::far
