/* What components offer by id, which of it are drafts, and what components need of their hosts.
 * SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_OFFERS_H
#define TENON_MANIFEST_OFFERS_H

#include "tables.h"
#include "text.h"

/* Checks a table that is offered by id: its size, its second member and its functions. */
void check_table(text* t, const char* id, const void* table);
/* Refuses what only hosts of 0.`minor` know, in a plugin that says that it runs on older ones. */
void check_minor(text* t, const tn_plugin* plugin, const char* what, unsigned minor);
/* Writes "required" of the component with this table, if its plugin states one. */
void write_requirement(text* t, const tn_plugin* plugin, const void* component);
/* Writes "tables" of a layer or reader type, the ids of these headers for types of the owner, TN_OF_*, that its
 * extension answers, if there are any; and "required". Checks these tables. */
void write_offers(text* t, const tn_plugin* plugin, const void* component, uint32_t owner,
                  const void* (*extension)(void* user, const char* id), void* user);
/* Writes "drafts" of the plugin, the drafts of these headers that it uses with the digest of each, if there are any. */
void write_drafts(text* t, const tn_plugin* plugin);
/* Refuses requirements of components that are not in the lists of the plugin. */
void check_requirements(text* t, const tn_plugin* plugin);

#endif
