// Marks the threads that the library starts. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::host {

namespace detail {
inline thread_local bool own_thread = false;
}  // namespace detail

// Called once by each such thread, at its start.
inline void mark_own_thread() noexcept { detail::own_thread = true; }
// Whether the calling thread is one of the library: of whichever host.
[[nodiscard]] inline bool is_own_thread() noexcept { return detail::own_thread; }

}  // namespace tenon::host
