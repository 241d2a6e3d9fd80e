/* Tenon SDK: migration of layers that model files hold from an older version of their type.
 * SPDX-License-Identifier: MIT
 *
 * A model file stores for each layer the plugin, its version, the type's state_version and all attributes, defaults
 * included. A layer with the state_version of the present type is made with the stored attributes, without a
 * migration; one with a newer version is refused. One with an older version is passed to the table "tenon.migrate/1",
 * which tn_layer_type.extension returns, and refused if the type does not offer it. */
#ifndef TENON_MIGRATE_H
#define TENON_MIGRATE_H

#include <tenon/attribute.h>
#include <tenon/services.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The values of a parameter or buffer of a model file: float32, row-major. */
typedef struct tn_stored_tensor {
  uint32_t size;
  int32_t rank;         /* 0 (one element) to TN_MAX_RANK */
  const int64_t* shape; /* [rank] */
  const float* values;  /* null if there are no elements */
} tn_stored_tensor;

/* The argument of migrate: one layer of a model file, and functions that change copies of what is stored. The changes
 * take effect if all functions succeeded and migrate returned TN_OK; otherwise the model is not loaded. Then the host
 * checks the attributes as if they had been given, and the parameters and buffers against plan. Attributes of the host
 * (parameter_name, act, drop_rate, param.*) are not part of it. [setup], valid until migrate returns. */
typedef struct tn_migration {
  uint32_t size;
  /* Of the file; less than that of the type's description. 0: not stated, since a host before 0.2 wrote the file;
   * attributes are then those that were given, without defaults. */
  uint32_t state_version;
  void* self;
  const tn_errors* errors;
  const char* plugin;         /* id of the plugin that offered the type when the file was written; "" if not stated */
  const char* plugin_version; /* its version, likewise */
  uint32_t attributes_count;
  uint32_t reserved;
  const char* const* attribute_names; /* [attributes_count] of the file; changes have no effect on these lists */
  const tn_value* attribute_values;   /* [attributes_count]; kind 0: the attribute was absent */
  /* Sets an attribute; copies the value; kind 0: absent. */
  tn_status (*set_attribute)(void* self, const char* name, const tn_value* value);
  /* Renames an attribute that is there to a name that is not. */
  tn_status (*rename_attribute)(void* self, const char* name, const char* now);
  /* Removes an attribute that is there. It gets its present default unless it is set again. */
  tn_status (*remove_attribute)(void* self, const char* name);
  /* Writes shape and values of the parameter or buffer <parameter name of the layer>.<suffix>, changes included, to
   * *tensor, whose size the caller sets. Borrowed until migrate returns. TN_NOT_FOUND, without a report, if there is
   * none; this is not a failure. */
  tn_status (*tensor)(void* self, const char* suffix, tn_stored_tensor* tensor);
  /* Replaces or adds a parameter or buffer; copies shape and values. */
  tn_status (*set_tensor)(void* self, const char* suffix, const tn_stored_tensor* tensor);
  /* Renames a parameter or buffer that is there to a suffix that is not; its settings param.<suffix>.* follow. */
  tn_status (*rename_tensor)(void* self, const char* suffix, const char* now);
  /* Removes a parameter or buffer that is there. */
  tn_status (*remove_tensor)(void* self, const char* suffix);
  void* user; /* of the layer type's table */
} tn_migration;

/* "tenon.migrate/1": an extension of a layer type. Immutable; lives as long as the plugin is mapped. */
#define TN_MIGRATE "tenon.migrate/1"
typedef struct tn_migrate {
  uint32_t size;
  /* The oldest state_version that migrate accepts; the host refuses older ones. 0: files that state none are migrated,
   * too; otherwise their layers are made with the attributes that were given, without a migration. */
  uint32_t oldest;
  /* [setup] Turns attributes, parameters and buffers of any version from `oldest` on into those of the present version.
   * Pure: layers that share parameters by name are migrated one by one from what the file holds, and the host refuses
   * the file if the results differ. On failure reports the reason. */
  tn_status (*migrate)(const tn_migration* migration);
} tn_migrate;

#ifdef __cplusplus
}
#endif
#endif
