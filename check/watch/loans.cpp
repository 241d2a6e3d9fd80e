// SPDX-License-Identifier: Apache-2.0
#include "check/watch/loans.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

extern "C" {
extern const uint32_t tenon_lent_sizes_2[], tenon_lent_sizes_3[];
}

namespace tenon::check {

namespace {

static_assert(TN_ABI_OLDEST == 2 && TN_ABI_MINOR == 4,
              "one list of sizes for each older version: check/CMakeLists.txt");
constexpr const uint32_t* kOlderSizes[] = {tenon_lent_sizes_2, tenon_lent_sizes_3};

constexpr const char* kLentNames[] = {
#define TENON_LENT(name) #name,
#include "check/watch/lent_structs.h"
#undef TENON_LENT
};

// Members that came after 0.2, for messages.
struct NewerMember {
  int number;
  size_t offset;
  const char* name;
};
#define TENON_NEWER(type, member) \
  { kLent_##type, offsetof(type, member), #member }
constexpr NewerMember kNewerMembers[] = {
    TENON_NEWER(tn_builder, argsort),
    TENON_NEWER(tn_builder, prefix_sum),
    TENON_NEWER(tn_builder, conv),
    TENON_NEWER(tn_builder, pool),
    TENON_NEWER(tn_builder, resize),
    TENON_NEWER(tn_builder, scan_begin),
    TENON_NEWER(tn_builder, scan_input),
    TENON_NEWER(tn_builder, scan_memory),
    TENON_NEWER(tn_builder, scan_next),
    TENON_NEWER(tn_builder, scan_end),
    TENON_NEWER(tn_builder, scan_last),
    TENON_NEWER(tn_builder, scan_output),
    TENON_NEWER(tn_execution, host_symbols),
    TENON_NEWER(tn_kernel_site, precision),
    TENON_NEWER(tn_names, columns_count),
    TENON_NEWER(tn_names, columns),
    TENON_NEWER(tn_names, columns_sha256),
    TENON_NEWER(tn_names, dtype),
    TENON_NEWER(tn_names, rank),
    TENON_NEWER(tn_names, shape),
    TENON_NEWER(tn_names, index_limit),
    TENON_NEWER(tn_planner, index_exempt),
    TENON_NEWER(tn_reader_open, needed),
    TENON_NEWER(tn_reader_open, needed_count),
};

// Pages for copies, each before one that cannot be accessed. A fixed array, since a signal handler reads it. More
// copies at a time than this are not guarded.
constexpr int kMostSlots = 8192;
constexpr uint32_t kTail = 128;  // the bytes by which structs of a newer host are longer
struct Slot {
  unsigned char *begin, *end;  // of the page that can be accessed
  const unsigned char* lent;   // the struct
  int number;
};
Slot slots[kMostSlots];
std::atomic<int> slots_count;
std::vector<int> free_slots;
std::mutex slots_lock;

OtherHost present_lender;
bool is_lending = false;
std::string lender_name;  // for the handler
std::mutex lent_fault_lock;
std::string lent_fault;

// Returns a page that is not in use, -1 without memory.
int take_slot() {
  const std::lock_guard<std::mutex> lock(slots_lock);
  if (!free_slots.empty()) {
    const int result = free_slots.back();
    free_slots.pop_back();
    return result;
  }
  const int number = slots_count;
  if (number == kMostSlots) return -1;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  if (mprotect(memory, page, PROT_READ | PROT_WRITE) != 0) return -1;
  auto* const begin = static_cast<unsigned char*>(memory);
  slots[number] = {begin, begin + page, begin, 0};
  slots_count = number + 1;
  return number;
}

// The one whose page without access has the address, or null.
const Slot* slot_before(const void* address) {
  for (int i = 0; i < slots_count; ++i)
    if (address >= slots[i].end && address < slots[i].end + (slots[i].end - slots[i].begin)) return &slots[i];
  return nullptr;
}

std::map<std::string, const void*>& kept_copies() {
  static std::map<std::string, const void*> result;
  return result;
}

}  // namespace

void* Loans::add(int number, const void* copy, uint32_t stated, void* original) {
  const OtherHost& host = present_lender;
  const uint32_t bytes =
      host.minor < TN_ABI_MINOR ? std::min(stated, kOlderSizes[host.minor - TN_ABI_OLDEST][number]) : stated;
  const uint32_t size = bytes + (host.is_newer() ? kTail : 0);
  const int at = take_slot();
  if (at < 0) return nullptr;
  Slot& slot = slots[at];
  std::memset(slot.begin, host.behind, static_cast<size_t>(slot.end - slot.begin));
  unsigned char* const lent = slot.end - size;
  std::memcpy(lent, copy, bytes);
  std::memcpy(lent, &size, sizeof size);
  slot.lent = lent;
  slot.number = number;
  loans_.push_back({at, bytes, original});
  return lent;
}

void Loans::check(const Loan& loan) {
  const Slot& slot = slots[loan.slot];
  for (const unsigned char* at = slot.lent + loan.bytes; at < slot.end; ++at)
    if (*at != present_lender.behind)
      return blame_lent(std::string("it writes behind the members of ") + kLentNames[slot.number] + " that it knows");
}

void Loans::end() {
  while (!loans_.empty()) {
    const Loan loan = loans_.back();
    loans_.pop_back();
    check(loan);
    if (loan.original != nullptr)
      std::memcpy(static_cast<char*>(loan.original) + sizeof(uint32_t), slots[loan.slot].lent + sizeof(uint32_t),
                  loan.bytes - sizeof(uint32_t));
    const std::lock_guard<std::mutex> lock(slots_lock);
    free_slots.push_back(loan.slot);
  }
}

Loans& Loans::forever() {
  static auto* const result = new Loans;  // a plugin uses these copies until the process ends
  return *result;
}
void Loans::check_kept() {
  const std::lock_guard<std::recursive_mutex> lock(kept_lock());
  for (const Loan& loan : forever().loans_) {
    const Slot& slot = slots[loan.slot];
    const unsigned char* const tail = slot.lent + loan.bytes;
    if (!std::all_of(tail, static_cast<const unsigned char*>(slot.end),
                     [&](unsigned char byte) { return byte == *tail; }))
      check(loan);
  }
}
std::recursive_mutex& Loans::kept_lock() {
  static std::recursive_mutex result;
  return result;
}
std::string Loans::key_of(const void* original, uint32_t bytes) {
  std::string result(reinterpret_cast<const char*>(&original), sizeof original);
  result += std::to_string(present_lender.minor) + '/' + std::to_string(present_lender.behind) + '/';
  return result.append(static_cast<const char*>(original), bytes);
}
const void* Loans::kept_copy(const std::string& key) {
  const auto entry = kept_copies().find(key);
  return entry == kept_copies().end() ? nullptr : entry->second;
}
void Loans::set_kept(const std::string& key, const void* copy) { kept_copies()[key] = copy; }

const OtherHost& lender() { return present_lender; }
void blame_lent(const std::string& fault) {
  const std::lock_guard<std::mutex> lock(lent_fault_lock);
  if (lent_fault.empty()) lent_fault = fault;
}

std::string OtherHost::name() const { return is_newer() ? "a newer host" : "a host of 0." + std::to_string(minor); }

Lending::Lending(const OtherHost& host) {
  present_lender = host;
  lender_name = host.name();
  is_lending = true;
}
Lending::~Lending() { is_lending = false; }
bool Lending::is_on() { return is_lending; }

std::string other_host_fault() {
  Loans::check_kept();
  const std::lock_guard<std::mutex> lock(lent_fault_lock);
  return std::exchange(lent_fault, "");
}

bool is_behind_lent(const void* address) { return slot_before(address) != nullptr; }
void tell_lent(const void* address, char* text, size_t capacity) {
  const Slot* const slot = slot_before(address);
  if (slot == nullptr) return;
  const char* member = "memory";
  for (const NewerMember& newer : kNewerMembers)
    if (newer.number == slot->number && slot->lent + newer.offset == address) member = newer.name;
  for (const char* more :
       {": it accesses ", member, " behind the end of ", kLentNames[slot->number], " in ", lender_name.c_str()})
    std::strncat(text, more, capacity - std::strlen(text) - 1);
}

}  // namespace tenon::check
