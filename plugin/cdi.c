/* CDI: a spec file a vendor, so that a runtime can put devices into containers by name. Written beside and
 * renamed, before the ids are advertised; schema 0.6, which runtimes from containerd 1.7 on read. */
#include "plugin/cdi.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"
#include "plugin/plugin_internal.h"
#include "plugin/resource.h"

#define CDI_VERSION "0.6.0"

bool cdi_name(const struct device *device, char *ret, size_t ret_bytes)
{
        size_t n = strlen(device->id);

        if (n == 0 || !isalnum((unsigned char) device->id[0]) || !isalnum((unsigned char) device->id[n - 1]))
                return false;
        for (const char *c = device->id; *c != '\0'; c++)
                if (!isalnum((unsigned char) *c) && strchr("_.:-", *c) == NULL)
                        return false;
        return text_format(ret, ret_bytes, "remuda.dev/%s=%s", device->vendor, device->id);
}

static json_t *device_node(const struct plugin *plugin, const char *path)
{
        const char *root = plugin->config.device_root;
        json_t *node = json_pack("{s:s, s:s}", "path", path, "permissions", "rw");

        if (node != NULL && root[0] != '\0' && strcmp(root, "/") != 0)
                (void) json_object_set_new(node, "hostPath", json_sprintf("%s%s", root, path));
        return node;
}

static json_t *device_entry(const struct plugin *plugin, const struct device *device)
{
        json_t *nodes = json_array();

        for (size_t i = 0; i < device->node_count; i++)
                (void) json_array_append_new(nodes, device_node(plugin, device->nodes[i]));
        return json_pack("{s:s, s:{s:o}}", "name", device->id, "containerEdits", "deviceNodes", nodes);
}

/* What any of the vendor's devices needs, once. */
static json_t *shared_edits(const struct plugin *plugin, const struct resource *resource)
{
        const char *root = strcmp(plugin->config.device_root, "/") == 0 ? "" : plugin->config.device_root;
        const struct environment_shared *shared = &resource->shared;
        json_t *nodes = json_array(), *mounts = json_array();

        for (size_t i = 0; i < shared->file_count; i++)
                (void) json_array_append_new(nodes, device_node(plugin, shared->files[i]));
        for (size_t i = 0; i < shared->mount_count; i++)
                (void) json_array_append_new(
                        mounts, json_pack("{s:o, s:s, s:[s,s,s,s]}", "hostPath",
                                          json_sprintf("%s%s", root, shared->mounts[i]->path),
                                          "containerPath", shared->mounts[i]->path, "options", "rbind",
                                          "nosuid", "nodev", shared->mounts[i]->writable ? "rw" : "ro"));
        return json_pack("{s:o, s:o}", "deviceNodes", nodes, "mounts", mounts);
}

static json_t *vendor_spec(const struct plugin *plugin, const struct resource *first)
{
        json_t *devices = json_array();
        char name[DEVICE_ID_BYTES + 64];

        for (const struct resource *r = plugin->resources; r != NULL; r = r->next)
                for (size_t i = 0; strcmp(r->vendor, first->vendor) == 0 && i < r->member_count; i++) {
                        const struct device *device = &plugin->inventory.devices[r->members[i]];

                        if (device->node_count > 0 && cdi_name(device, name, sizeof(name)))
                                (void) json_array_append_new(devices, device_entry(plugin, device));
                }
        if (json_array_size(devices) == 0) { /* the schema wants at least one */
                json_decref(devices);
                return NULL;
        }
        return json_pack("{s:s, s:o, s:o, s:o}", "cdiVersion", CDI_VERSION, "kind",
                         json_sprintf("remuda.dev/%s", first->vendor), "devices", devices, "containerEdits",
                         shared_edits(plugin, first));
}

static bool same_content(const char *path, const char *content)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");
        size_t n = strlen(content);
        CLEANUP(free_p) char *have = malloc(n + 2);

        return file != NULL && have != NULL && fread(have, 1, n + 1, file) == n &&
               memcmp(have, content, n) == 0;
}

static int write_file(const char *directory, const char *vendor, const char *content, struct err *err)
{
        char path[320];
        int r;

        (void) text_format(path, sizeof(path), "%s/remuda.dev-%s.json", directory, vendor);
        if (same_content(path, content))
                return 0;
        r = whole_file_write(path, content, strlen(content), 0644, WHOLE_FILE_SYNCED, err);
        return r < 0 ? err_wrap(err, r, "CDI spec") : 0;
}

static void remove_spec(const char *directory, const char *vendor)
{
        char path[320];

        (void) text_format(path, sizeof(path), "%s/remuda.dev-%s.json", directory, vendor);
        (void) unlink(path);
}

static bool first_of_vendor(const struct plugin *plugin, const struct resource *resource)
{
        for (const struct resource *r = plugin->resources; r != resource; r = r->next)
                if (strcmp(r->vendor, resource->vendor) == 0)
                        return false;
        return true;
}

int cdi_write(struct plugin *plugin, struct err *err)
{
        const char *directory = plugin->config.cdi_directory;
        int result = 0;

        if (directory[0] == '\0')
                return 0;
        for (const struct resource *r = plugin->resources; r != NULL; r = r->next) {
                CLEANUP(free_p) char *content = NULL;
                json_t *spec;
                int n;

                if (!first_of_vendor(plugin, r))
                        continue;
                spec = vendor_spec(plugin, r);
                if (spec == NULL) {
                        remove_spec(directory, r->vendor);
                        continue;
                }
                content = json_dumps(spec, JSON_INDENT(1));
                json_decref(spec);
                n = content == NULL ? err_set(err, -ENOMEM, "no memory for a CDI spec")
                                    : write_file(directory, r->vendor, content, err);
                if (n < 0)
                        result = n;
        }
        return result;
}
