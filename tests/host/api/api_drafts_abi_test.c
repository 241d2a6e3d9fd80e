/* The drafts of the public API: offsets on x86-64, checked in C. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/tenon_team.h>

#include "../../sdk/abi.h"
/* tenon/tenon_team.h */
GROWS(tn_team_info, 64);
AT(tn_team_info, size, 0);
AT(tn_team_info, epoch, 4);
AT(tn_team_info, rank, 8);
AT(tn_team_info, processes, 16);
AT(tn_team_info, comm, 24);
AT(tn_team_info, refused, 32);
AT(tn_team_info, step, 40);
AT(tn_team_info, waits_for, 48);
AT(tn_team_info, servers, 56);
int main(void) { return 0; }
