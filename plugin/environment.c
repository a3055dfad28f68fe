/* Environment: what a container gets with devices of one resource: device files, variables, mounts. Devices
 * are named by what does not change while they exist: the kubelet keeps the answer for the pod's whole life.
 */
#include "plugin/environment.h"

#include <string.h>

#include "base/text.h"

#define LAUNCH_SOCKET_DIRECTORY "/run/remuda" /* where remuda-launch looks for the agent */
#define HOST_PATH_BYTES         512

void environment_find_shared(const struct tree *tree, const char *vendor, struct environment_shared *ret)
{
        *ret = (struct environment_shared){ 0 };
        for (const struct vendor *row = vendor_find(vendor, NULL); row != NULL;
             row = vendor_find(vendor, row)) {
                if (ret->variable == NULL && row->container.name != NULL)
                        ret->variable = &row->container;
                for (size_t i = 0; tree != NULL && row->control_nodes[i] != NULL; i++)
                        if (ret->file_count < ENVIRONMENT_SHARED_FILES_MAX &&
                            tree_has(tree, row->control_nodes[i]))
                                ret->files[ret->file_count++] = row->control_nodes[i];
                for (const struct vendor_mount *m = row->mounts; tree != NULL && m != NULL && m->path != NULL;
                     m++)
                        if (ret->mount_count < ENVIRONMENT_SHARED_MOUNTS_MAX && tree_has(tree, m->path))
                                ret->mounts[ret->mount_count++] = m;
        }
}

static void host_path(const struct plugin_config *config, const char *path, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "%s%s",
                           strcmp(config->device_root, "/") == 0 ? "" : config->device_root, path);
}

static void add_file(const struct environment_of *of, struct pb_arena *arena, struct environment *ret,
                     const char *path)
{
        char host[HOST_PATH_BYTES];

        for (size_t i = 0; i < ret->file_count; i++)
                if (strcmp(ret->files[i].inside, path) == 0)
                        return;
        host_path(of->config, path, host, sizeof(host));
        ret->files[ret->file_count].inside = pb_arena_copy(arena, path);
        ret->files[ret->file_count].outside = pb_arena_copy(arena, host);
        ret->file_count += !arena->failed;
}

static void add_files(const struct environment_of *of, struct pb_arena *arena, struct environment *ret)
{
        size_t most = of->device_count * DEVICE_NODES_MAX + ENVIRONMENT_SHARED_FILES_MAX;

        ret->files = pb_arena_take(arena, most * sizeof(*ret->files));
        if (ret->files == NULL)
                return;
        for (size_t i = 0; i < of->device_count; i++)
                for (size_t j = 0; j < of->devices[i]->node_count; j++)
                        add_file(of, arena, ret, of->devices[i]->nodes[j]);
        for (size_t i = 0; i < of->shared->file_count; i++)
                add_file(of, arena, ret, of->shared->files[i]);
}

static void add_variable(struct pb_arena *arena, struct environment *ret, const char *name, const char *value)
{
        struct environment_variable *variable = &ret->variables[ret->variable_count++];

        variable->name = pb_arena_copy(arena, name);
        variable->value = pb_arena_copy(arena, value);
}

/* REMUDA_DEVICES_NVIDIA_COM_GPU: a container with several resources gets all of them, where the kubelet would
 * keep only one REMUDA_DEVICES. */
static void variable_of_resource(const char *resource, char *ret, size_t ret_bytes)
{
        (void) text_format(ret, ret_bytes, "REMUDA_DEVICES_%s", resource);
        environment_word(ret);
}

void environment_word(char *word)
{
        for (char *c = word; *c != '\0'; c++)
                if (*c >= 'a' && *c <= 'z')
                        *c = (char) (*c - 'a' + 'A');
                else if (!(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9'))
                        *c = '_';
}

static void add_variables(const struct environment_of *of, struct pb_arena *arena, struct environment *ret)
{
        const struct vendor_variable *variable = of->shared->variable;
        struct text ids = { 0 }, visible = { 0 }, places = { 0 };
        bool placed = true;
        char name[DEVICE_RESOURCE_BYTES + 16], one[DEVICE_ID_BYTES];

        for (size_t i = 0; i < of->device_count; i++) {
                text_printf(&ids, "%s%s", i == 0 ? "" : ",", of->devices[i]->id);
                text_printf(&places, "%s%s", i == 0 ? "" : ",", of->devices[i]->pci);
                placed = placed && of->devices[i]->pci[0] != '\0';
                if (variable != NULL) {
                        vendor_visible_name(variable->by, of->devices[i], one, sizeof(one));
                        text_printf(&visible, "%s%s", i == 0 ? "" : ",", one);
                }
        }
        variable_of_resource(of->resource, name, sizeof(name));
        add_variable(arena, ret, "REMUDA_DEVICES", ids.data == NULL ? "" : ids.data);
        add_variable(arena, ret, name, ids.data == NULL ? "" : ids.data);
        add_variable(arena, ret, "REMUDA_VENDOR", of->vendor);
        if (placed && places.data != NULL)
                add_variable(arena, ret, "REMUDA_PCI", places.data);
        if (visible.data != NULL)
                add_variable(arena, ret, variable->name, visible.data);
        arena->failed |= ids.failed || visible.failed || places.failed;
        text_free(&places);
        text_free(&ids);
        text_free(&visible);
}

static void add_mount(struct pb_arena *arena, struct environment *ret, const char *inside,
                      const char *outside, bool read_only)
{
        ret->mounts[ret->mount_count++] =
                (struct environment_mount){ .inside = pb_arena_copy(arena, inside),
                                            .outside = pb_arena_copy(arena, outside),
                                            .read_only = read_only };
}

static void add_mounts(const struct environment_of *of, struct pb_arena *arena, struct environment *ret)
{
        char host[HOST_PATH_BYTES];

        for (size_t i = 0; i < of->shared->mount_count; i++) {
                const struct vendor_mount *mount = of->shared->mounts[i];

                host_path(of->config, mount->path, host, sizeof(host));
                add_mount(arena, ret, mount->path, host, !mount->writable);
        }
        if (of->config->launch_socket_directory[0] != '\0')
                add_mount(arena, ret, LAUNCH_SOCKET_DIRECTORY, of->config->launch_socket_directory, true);
}

void environment_build(const struct environment_of *of, struct pb_arena *arena, struct environment *ret)
{
        *ret = (struct environment){ 0 };
        add_files(of, arena, ret);
        add_variables(of, arena, ret);
        add_mounts(of, arena, ret);
}
