// Checks of communicators whose ranks are missing, lost, late or strangers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/checks/check_list.h"

namespace tenon::check {

void check_missing(Context& context);
void check_cancel(Context& context);
void check_loss(Context& context);
void check_silence(Context& context);
void check_strangers(Context& context);
void check_abort(Context& context);
void check_close(Context& context);

}  // namespace tenon::check
