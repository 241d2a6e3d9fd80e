// Codes the records of a group: numbers in base 128, seven bits in a byte, the lowest first, of which all but the last
// have bit 7. A record is 4 * bytes + gap, where the gap is that to the record before; one of 3 stands for 3 and more,
// and the rest follows as a number. SPDX-License-Identifier: Apache-2.0
#include "record_index.h"

#include <algorithm>
#include <cstring>

namespace tenon::files {

namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kGroupsPerBlock = int64_t{1} << 12;
constexpr uint64_t kBlockBytes = uint64_t{1} << 16;  // of codes
constexpr uint64_t kMostBytes = 20;                  // of a record: two numbers of 64 bits
constexpr uint64_t kLongGap = 3;                     // the line end may have two characters
constexpr int kGapBits = 2;
constexpr int kBits = 7;
constexpr uint64_t kMore = uint64_t{1} << kBits;

uint64_t number_at(const uint8_t*& at) {
  uint64_t number = *at & (kMore - 1);
  for (int shift = kBits; (*at++ & kMore) != 0; shift += kBits) number |= (*at & (kMore - 1)) << shift;
  return number;
}

}  // namespace

void RecordIndex::write(uint64_t number) {
  uint8_t* const codes = blocks_.back().data();
  for (; number >= kMore; number >>= kBits) codes[used_++] = static_cast<uint8_t>(number | kMore);
  codes[used_++] = static_cast<uint8_t>(number);
}

void RecordIndex::begin_group(uint64_t offset) {
  if (blocks_.empty() || used_ + kGroup * kMostBytes > kBlockBytes) {
    blocks_.emplace_back(memory_, kBlockBytes);
    used_ = 0;
  }
  const auto place = static_cast<uint64_t>(records_ / kGroup % kGroupsPerBlock);
  if (place == 0) groups_.emplace_back(memory_, kGroupsPerBlock * sizeof(Group));
  const Group group = {offset, blocks_.back().data() + used_};
  std::memcpy(groups_.back().data() + place * sizeof group, &group, sizeof group);
  end_ = offset;
}

void RecordIndex::add(const Extent& record) {
  if (records_ % kGroup == 0) begin_group(record.offset);
  const uint64_t gap = record.offset - end_;
  write(record.bytes << kGapBits | std::min(gap, kLongGap));
  if (gap >= kLongGap) write(gap - kLongGap);
  end_ = record.offset + record.bytes;
  ++records_;
}

Extent RecordIndex::at(int64_t number) const {
  Group group;
  std::memcpy(&group,
              groups_[static_cast<size_t>(number / kGroup / kGroupsPerBlock)].data() +
                  static_cast<size_t>(number / kGroup % kGroupsPerBlock) * sizeof group,
              sizeof group);
  const uint8_t* code = group.codes;
  Extent record = {group.offset, 0};
  for (int64_t i = number % kGroup; i >= 0; --i) {
    const uint64_t coded = number_at(code);
    uint64_t gap = coded & kLongGap;
    if (gap == kLongGap) gap += number_at(code);
    record = {record.offset + record.bytes + gap, coded >> kGapBits};
  }
  return record;
}

}  // namespace tenon::files
