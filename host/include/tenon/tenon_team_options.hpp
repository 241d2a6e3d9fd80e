// Tenon's C++ API: the options of teams. Include <tenon/tenon.hpp>. Written by
// host/api/spec/generate_options.py. SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TEAM_OPTIONS_HPP
#define TENON_TENON_TEAM_OPTIONS_HPP

#include <tenon/tenon_team_options.h>

#include <cstdint>
#include <string>
#include <tenon/tenon_option_lists.hpp>

namespace tenon {
inline namespace v0 {

// As tn_team_options documents it.
struct TeamOptions {
  // The type of the communicator, such as "mpich"; empty: that of the MPI whose launcher has started this process, else
  // "zmq".
  std::string comm;
  // Its attributes, a JSON object; empty: none.
  std::string attributes;
  // The number of this process, from 0; -1: as the launcher says.
  int64_t rank = -1;
  // Of the team; -1: as the launcher says.
  int64_t processes = -1;
  // Of this start: processes of another epoch do not join.
  uint32_t epoch = 0;
  // Where process 0 listens and the others find it, such as "tcp://10.0.0.4:5000"; empty: the launcher connects the
  // processes.
  std::string address;
  // The name or address of this machine for the other processes; empty: the choice of the communicator.
  std::string listen;
  // A file with the secret of this start, readable by its owner alone, or "fd:7", an inherited descriptor; empty: no
  // secret.
  std::string secret;
  // For all processes to join.
  double deadline_seconds = 30;
  // The last processes of the team that own the rows of tables and compute no shards; 0: all processes do both.
  int64_t servers = 0;
  // A process of which nothing is heard for so long is lost; 0: none is.
  double silence_seconds = 1.5;
};

namespace detail {

// Each fills a struct of C, which borrows from `from` and `lists`.
inline void fill(tn_team_options& to, const TeamOptions& from, [[maybe_unused]] OptionLists& lists) {
  to.size = sizeof to;
  to.epoch = from.epoch;
  to.rank = from.rank;
  to.processes = from.processes;
  to.comm = from.comm.empty() ? nullptr : c_text(from.comm, "options.comm");
  to.attributes = from.attributes.empty() ? nullptr : c_text(from.attributes, "options.attributes");
  to.address = from.address.empty() ? nullptr : c_text(from.address, "options.address");
  to.listen = from.listen.empty() ? nullptr : c_text(from.listen, "options.listen");
  to.secret = from.secret.empty() ? nullptr : c_text(from.secret, "options.secret");
  to.deadline_seconds = from.deadline_seconds;
  to.silence_seconds = from.silence_seconds;
  to.servers = from.servers;
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
