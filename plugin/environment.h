/* Environment: what a container gets with devices of one resource: device files, variables, mounts; the same
 * by whichever API the kubelet asks. Built in the arena of the request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/inventory/device.h"
#include "agent/tree/tree.h"
#include "agent/vendor/vendor.h"
#include "base/pb.h"
#include "plugin/plugin_config.h"

#define ENVIRONMENT_SHARED_FILES_MAX  16
#define ENVIRONMENT_SHARED_MOUNTS_MAX 16
#define ENVIRONMENT_VARIABLES_MAX     5

/* What a container gets with any device of the vendor, as far as it exists on this node. */
struct environment_shared {
        const struct vendor_variable *variable; /* that says which devices; NULL = none */
        const char *files[ENVIRONMENT_SHARED_FILES_MAX];
        size_t file_count;
        const struct vendor_mount *mounts[ENVIRONMENT_SHARED_MOUNTS_MAX];
        size_t mount_count;
};

/* environment_find_shared() - of all the vendor's rows: a node may have several of its lines of products.
 * @tree: where files and mounts are looked for; NULL = there are none */
void environment_find_shared(const struct tree *tree, const char *vendor, struct environment_shared *ret);

struct environment_file {
        const char *inside, *outside;
};

struct environment_variable {
        const char *name, *value;
};

struct environment_mount {
        const char *inside, *outside;
        bool read_only;
};

struct environment {
        struct environment_file *files;
        size_t file_count;
        struct environment_variable variables[ENVIRONMENT_VARIABLES_MAX];
        size_t variable_count;
        struct environment_mount mounts[ENVIRONMENT_SHARED_MOUNTS_MAX + 1];
        size_t mount_count;
};

/* Whose: the devices in canonical order, each once. */
struct environment_of {
        const char *resource, *vendor; /* "nvidia.com/gpu", "nvidia" */
        const struct device *const *devices;
        size_t device_count;
        const struct environment_shared *shared;
        const struct plugin_config *config;
};

/* environment_word() - what a name becomes as a part of a variable's: capital letters, digits and '_'. */
void environment_word(char *word);

/* environment_build() - all of it; the arena has failed where memory was short. */
void environment_build(const struct environment_of *of, struct pb_arena *arena, struct environment *ret);
