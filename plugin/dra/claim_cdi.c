/* Claim CDI: a claim's spec file: what a container that uses the claim gets, as a runtime puts it in. */
#include "plugin/dra/claim_cdi.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/inventory/prefer_map.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/make_folders.h"
#include "io/read_file.h"
#include "io/whole_file.h"
#include "plugin/environment.h"

#define CDI_VERSION "0.6.0"
#define PREFIX      "remuda.dev-claim_"
#define SUFFIX      ".json"
#define ARENA_BYTES ((size_t) 1 << 20)

void claim_cdi_device_name(const struct dra_state_claim *claim, size_t device, char ret[CLAIM_CDI_NAME_BYTES])
{
        (void) text_format(ret, CLAIM_CDI_NAME_BYTES, CLAIM_CDI_KIND "=%s.device.%s", claim->uid,
                           claim->devices[device].name);
}

void claim_cdi_request_name(const struct dra_state_claim *claim, size_t device,
                            char ret[CLAIM_CDI_NAME_BYTES])
{
        (void) text_format(ret, CLAIM_CDI_NAME_BYTES, CLAIM_CDI_KIND "=%s.request.%s", claim->uid,
                           claim->devices[device].request);
}

bool claim_cdi_is_first(const struct dra_state_claim *claim, size_t device)
{
        for (size_t i = 0; i < device; i++)
                if (strcmp(claim->devices[i].request, claim->devices[device].request) == 0)
                        return false;
        return true;
}

/* Is it the first of its name? Several requests may have shares of one device. */
static bool is_first_of_name(const struct dra_state_claim *claim, size_t device)
{
        for (size_t i = 0; i < device; i++)
                if (strcmp(claim->devices[i].name, claim->devices[device].name) == 0)
                        return false;
        return true;
}

/* The devices of one request in canonical order, each once, and the group that says what they are. */
struct members {
        const struct device *devices[DRA_STATE_DEVICES_MAX];
        size_t indexes[DRA_STATE_DEVICES_MAX];
        size_t count;
        const struct device_group *group;
};

static bool has_member(const struct members *members, size_t index)
{
        for (size_t i = 0; i < members->count; i++)
                if (members->indexes[i] == index)
                        return true;
        return false;
}

static int find_members(const struct inventory *inventory, const struct dra_state_claim *claim,
                        const char *request, struct members *ret, struct err *err)
{
        *ret = (struct members){ .count = 0 };
        for (size_t i = 0; i < claim->device_count; i++) {
                const struct device *device = inventory_find_device(inventory, claim->devices[i].id);
                const struct device_group *group;

                if (strcmp(claim->devices[i].request, request) != 0)
                        continue;
                group = device == NULL ? NULL : inventory_find_group(inventory, device->group);
                if (group == NULL)
                        return err_set(err, -EBADMSG, "its device '%s' is not there any more",
                                       claim->devices[i].name);
                if (ret->group != NULL && strcmp(ret->group->resource, group->resource) != 0)
                        return err_set(err, -EBADMSG,
                                       "its request '%s' has devices of %s and of %s, which no program uses "
                                       "together; "
                                       "ask for each in a request of its own",
                                       request, ret->group->resource, group->resource);
                ret->group = group;
                if (!has_member(ret, (size_t) (device - inventory->devices)))
                        ret->indexes[ret->count++] = (size_t) (device - inventory->devices);
        }
        if (ret->count > 0)
                qsort_r(ret->indexes, ret->count, sizeof(size_t), prefer_map_order, (void *) inventory);
        for (size_t i = 0; i < ret->count; i++)
                ret->devices[i] = &inventory->devices[ret->indexes[i]];
        return 0;
}

static json_t *nodes_of(const struct environment *environment)
{
        json_t *nodes = json_array();

        for (size_t i = 0; i < environment->file_count; i++)
                (void) json_array_append_new(
                        nodes, json_pack("{s:s, s:s, s:s}", "path", environment->files[i].inside, "hostPath",
                                         environment->files[i].outside, "permissions", "rw"));
        return nodes;
}

static json_t *edits_of(const struct environment *environment, bool all)
{
        json_t *edits = json_pack("{s:o}", "deviceNodes", nodes_of(environment)), *env, *mounts;

        if (!all)
                return edits;
        env = json_array();
        mounts = json_array();
        for (size_t i = 0; i < environment->variable_count; i++)
                (void) json_array_append_new(env, json_sprintf("%s=%s", environment->variables[i].name,
                                                               environment->variables[i].value));
        for (size_t i = 0; i < environment->mount_count; i++)
                (void) json_array_append_new(
                        mounts,
                        json_pack("{s:s, s:s, s:[s,s,s,s]}", "hostPath", environment->mounts[i].outside,
                                  "containerPath", environment->mounts[i].inside, "options", "rbind",
                                  "nosuid", "nodev", environment->mounts[i].read_only ? "ro" : "rw"));
        (void) json_object_set_new(edits, "env", env);
        (void) json_object_set_new(edits, "mounts", mounts);
        return edits;
}

/* A runtime refuses a whole spec in which a device edits nothing. Example: a CPU group has no file; a
 * container is told once more whose it is. */
static int keep_from_empty(json_t *edits, const char *vendor)
{
        if (json_array_size(json_object_get(edits, "deviceNodes")) > 0)
                return 0;
        return json_object_set_new(edits, "env", json_pack("[o]", json_sprintf("REMUDA_VENDOR=%s", vendor)));
}

static int add_entry(json_t *devices, const char *name, json_t *edits)
{
        return json_array_append_new(
                devices, json_pack("{s:s, s:o}", "name", strchr(name, '=') + 1, "containerEdits", edits));
}

/* A device of a slice, which may be several of the inventory: the files of all. */
static int add_device(const struct claim_cdi_node *node, const struct dra_state_claim *claim, size_t index,
                      json_t *devices, struct pb_arena *arena)
{
        static const struct environment_shared nothing = { .file_count = 0 };
        const struct device *own[DRA_STATE_DEVICES_MAX];
        struct environment_of of = {
                .resource = "", .vendor = "", .devices = own, .shared = &nothing, .config = node->config
        };
        struct environment environment;
        char name[CLAIM_CDI_NAME_BYTES];
        json_t *edits;

        for (size_t i = index; i < claim->device_count; i++) {
                const struct device *device = inventory_find_device(node->inventory, claim->devices[i].id);
                bool known =
                        device == NULL || strcmp(claim->devices[i].name, claim->devices[index].name) != 0;

                for (size_t k = 0; !known && k < of.device_count; k++)
                        known = own[k] == device;
                if (!known)
                        own[of.device_count++] = device;
        }

        environment_build(&of, arena, &environment);
        claim_cdi_device_name(claim, index, name);
        if (arena->failed)
                return -ENOMEM;
        edits = edits_of(&environment, false);
        if (keep_from_empty(edits, of.device_count > 0 ? own[0]->vendor : "") < 0) {
                json_decref(edits);
                return -ENOMEM;
        }
        return add_entry(devices, name, edits);
}

/* What the request alone has, under a name that no other request has: where a container has several, of the
 * variables of one name the last stands, and remuda-launch puts these together
 * (job/launcher/devices/claimed_devices.h). */
static json_t *claim_variable(const struct dra_state_claim *claim, size_t first,
                              const struct members *members)
{
        char name[DEVICE_RESOURCE_BYTES + DRA_STATE_UID_BYTES + 32];
        CLEANUP(text_free) struct text pairs = { 0 };

        (void) text_format(name, sizeof(name), "REMUDA_CLAIM_%s__%s_%zu", members->group->resource,
                           claim->uid, first);
        environment_word(name);
        for (size_t i = 0; i < members->count; i++)
                text_printf(&pairs, "%s%s=%s", i == 0 ? "" : ",", members->devices[i]->id,
                            members->devices[i]->pci);
        return pairs.failed || pairs.data == NULL ? NULL : json_sprintf("%s=%s", name, pairs.data);
}

static uint64_t share_of(const struct dra_state_claim *claim, const char *request,
                         const struct device *device)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < claim->device_count; i++)
                if (claim->devices[i].share[0] != '\0' && strcmp(claim->devices[i].request, request) == 0 &&
                    strcmp(claim->devices[i].id, device->id) == 0)
                        bytes += claim->devices[i].memory_bytes;
        return bytes;
}

/* How much of the memory of each device is the claim's: "GPU-a=42949672960,GPU-b=..."; none where it has them
 * alone. Return: 0 or -ENOMEM. */
static int add_shares(const struct dra_state_claim *claim, size_t first, const struct members *members,
                      json_t *env)
{
        CLEANUP(text_free) struct text pairs = { 0 };

        for (size_t i = 0; i < members->count; i++) {
                uint64_t bytes = share_of(claim, claim->devices[first].request, members->devices[i]);

                if (bytes > 0)
                        text_printf(&pairs, "%s%s=%ju", pairs.size_bytes == 0 ? "" : ",",
                                    members->devices[i]->id, (uintmax_t) bytes);
        }
        if (pairs.failed)
                return -ENOMEM;
        return pairs.data == NULL || json_array_append_new(
                                             env, json_sprintf(CLAIM_CDI_SHARES "=%s", pairs.data)) == 0
                       ? 0
                       : -ENOMEM;
}

static int add_request(const struct claim_cdi_node *node, const struct dra_state_claim *claim, size_t first,
                       json_t *devices, struct pb_arena *arena, struct err *err)
{
        struct environment_shared shared;
        struct environment environment;
        struct members members;
        struct environment_of of = { .shared = &shared, .config = node->config };
        char name[CLAIM_CDI_NAME_BYTES];
        json_t *edits;
        int r = find_members(node->inventory, claim, claim->devices[first].request, &members, err);

        if (r < 0)
                return r;
        of.resource = members.group->resource;
        of.vendor = members.group->vendor;
        of.devices = members.devices;
        of.device_count = members.count;
        environment_find_shared(node->tree, members.group->vendor, &shared);
        environment_build(&of, arena, &environment);
        claim_cdi_request_name(claim, first, name);
        if (arena->failed)
                return -ENOMEM;
        edits = edits_of(&environment, true);
        if (json_array_append_new(json_object_get(edits, "env"), claim_variable(claim, first, &members)) <
                    0 ||
            add_shares(claim, first, &members, json_object_get(edits, "env")) < 0) {
                json_decref(edits);
                return -ENOMEM;
        }
        return add_entry(devices, name, edits);
}

/* A runtime refuses a spec whose annotations are too long: such a claim has none. That of 512 devices with
 * the longest names there are is of 200 KiB; only an id of letters that JSON escapes makes it longer. */
static int add_record(json_t *spec, const struct dra_state_claim *claim)
{
        const struct dra_state_change change = { .added = (struct dra_state_claim *) claim,
                                                 .added_count = 1 };
        CLEANUP(free_p) char *line = dra_state_encode_change(&change);

        if (line == NULL)
                return -ENOMEM;
        if (strlen(CLAIM_CDI_RECORD) + strlen(line) > CLAIM_CDI_RECORD_MAX)
                return 0;
        return json_object_set_new(spec, "annotations", json_pack("{s:s}", CLAIM_CDI_RECORD, line)) == 0
                       ? 0
                       : -ENOMEM;
}

int claim_cdi_build(const struct claim_cdi_node *node, const struct dra_state_claim *claim, json_t **ret,
                    struct err *err)
{
        json_t *devices = json_array();
        struct pb_arena arena;
        int r = devices == NULL ? -ENOMEM : 0;

        pb_arena_init(&arena, ARENA_BYTES);
        for (size_t i = 0; r == 0 && i < claim->device_count; i++) {
                if (claim_cdi_is_first(claim, i))
                        r = add_request(node, claim, i, devices, &arena, err);
                if (r == 0 && is_first_of_name(claim, i))
                        r = add_device(node, claim, i, devices, &arena);
        }
        pb_arena_free(&arena);
        if (r == 0) {
                *ret = json_pack("{s:s, s:s, s:O}", "cdiVersion", CDI_VERSION, "kind", CLAIM_CDI_KIND,
                                 "devices", devices);
                r = *ret == NULL ? -ENOMEM : add_record(*ret, claim);
                if (r < 0)
                        json_decref(TAKE(*ret));
        }
        json_decref(devices);
        return r == 0 || r == -EBADMSG ? r : err_set(err, -ENOMEM, "no memory for a claim's CDI spec");
}

bool claim_cdi_path(const char *directory, const char *uid, char ret[CLAIM_CDI_PATH_BYTES])
{
        return text_format(ret, CLAIM_CDI_PATH_BYTES, "%s/" PREFIX "%s" SUFFIX, directory, uid);
}

/* It is in memory, as /var/run is: nothing is waited for. */
int claim_cdi_write(const struct claim_cdi_node *node, const struct dra_state_claim *claim, struct err *err)
{
        CLEANUP(free_p) char *text = NULL, *have = NULL;
        char path[CLAIM_CDI_PATH_BYTES];
        json_t *spec = NULL;
        int r = claim_cdi_build(node, claim, &spec, err);

        if (r < 0)
                return r;
        text = json_dumps(spec, JSON_INDENT(1));
        json_decref(spec);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for a claim's CDI spec");
        if (!claim_cdi_path(node->directory, claim->uid, path))
                return err_set(err, -ENAMETOOLONG, "--cdi-dir: the path is too long");
        if (read_file(path, CLAIM_CDI_MAX_BYTES, &have, NULL, NULL) == 0 && strcmp(have, text) == 0)
                return 0;
        make_folders(path);
        r = whole_file_write(path, text, strlen(text), 0644, 0, err);
        return r < 0 ? err_wrap(err, r, "CDI spec") : 0;
}

void claim_cdi_remove(const char *directory, const char *uid)
{
        char path[CLAIM_CDI_PATH_BYTES];

        if (dra_state_uid_valid(uid) && claim_cdi_path(directory, uid, path))
                (void) unlink(path);
}

bool claim_cdi_is_spec(const char *name, char ret_uid[DRA_STATE_UID_BYTES])
{
        size_t n = strlen(name), fixed = strlen(PREFIX SUFFIX);

        return n > fixed && text_starts_with(name, PREFIX) && text_ends_with(name, SUFFIX) &&
               text_format(ret_uid, DRA_STATE_UID_BYTES, "%.*s", (int) (n - fixed), name + strlen(PREFIX)) &&
               dra_state_uid_valid(ret_uid);
}

void claim_cdi_sweep(const char *directory, const struct dra_state *state)
{
        DIR *folder = opendir(directory);
        const struct dirent *entry;

        while (folder != NULL && (entry = readdir(folder)) != NULL) {
                char uid[DRA_STATE_UID_BYTES];

                if (claim_cdi_is_spec(entry->d_name, uid) && dra_state_find(state, uid) == NULL)
                        claim_cdi_remove(directory, uid);
        }
        if (folder != NULL)
                (void) closedir(folder);
}
