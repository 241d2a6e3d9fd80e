// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <tenon/base.hpp>

#include "library.h"

namespace tenon_mpi {

namespace {

#ifdef OPEN_MPI
constexpr const char* kRank = "OMPI_COMM_WORLD_RANK";
constexpr const char* kRanks = "OMPI_COMM_WORLD_SIZE";
#else
constexpr const char* kRank = "PMI_RANK";
constexpr const char* kRanks = "PMI_SIZE";
#endif

std::optional<int32_t> number(const char* variable) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) return std::nullopt;
  int32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc() && stop == end && value >= 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Place> launched_place() {
  const std::optional<int32_t> rank = number(kRank);
  const std::optional<int32_t> ranks = number(kRanks);
  if (!rank || !ranks) return std::nullopt;
  return Place{*rank, *ranks};
}

int32_t started_processes() {
  int32_t count = 1;
  for (const char* size : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    count = std::max(count, number(size).value_or(1));
  return std::max(count, number("PMIX_RANK").value_or(0) + 1);  // PMIx states no size
}

void check_place(const Place& place, int32_t rank, int32_t ranks) {
  const int32_t started = started_processes();
  const std::string launcher = TENON_MPI_LAUNCHER;
  if (place.ranks == 1 && started > 1 && ranks != 1)
    throw tn::Failure(TN_INVALID, "ranks",
                      std::to_string(started) +
                          " processes were started, each as a world of its own: "
                          "start them with " +
                          launcher);
  if (ranks != -1 && ranks != place.ranks)
    throw tn::Failure(TN_INVALID, "ranks",
                      "the world has " + std::to_string(place.ranks) + " ranks, expected " + std::to_string(ranks) +
                          ": start them with " + launcher + " -n " + std::to_string(ranks));
  if (rank != -1 && rank != place.rank)
    throw tn::Failure(
        TN_INVALID, "rank",
        "the process is rank " + std::to_string(place.rank) + " of its world, expected " + std::to_string(rank));
}

}  // namespace tenon_mpi
