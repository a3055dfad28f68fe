/* Reads a store once, a machine, an agent, or a folder, and adds the names that are there. */
#include "cli/completion/completion_names.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "base/cleanup.h"
#include "cli/command/agent_client.h"
#include "cli/command/open_tree.h"
#include "job/show/jobs.h"
#include "planner/models/network_models.h"
#include "store/store_once.h"

#define PODS       (1u << STORE_POD)
#define JOBS       (1u << STORE_TRAINING_JOB)
#define NODES      (1u << STORE_NODE | 1u << STORE_INVENTORY)
#define DIRECTORY  "dir:"
#define KUBERNETES "kubernetes"

static const unsigned kinds_of[] = {
        [COMPLETIONS_NODES] = NODES,
        [COMPLETIONS_PODS] = PODS,
        [COMPLETIONS_QUALIFIED] = PODS,
        [COMPLETIONS_JOBS] = JOBS,
        [COMPLETIONS_NAMESPACES] = PODS | JOBS,
        [COMPLETIONS_SUBFOLDERS] = 0,
};

struct reading {
        struct store_once once;
        const struct completions *completions;
        json_t *names;    /* an object: each name once, in their order */
        unsigned awaited; /* kinds */
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct reading *r = userdata;
        const char *wanted = options_cursor_value(&r->completions->cursor, "namespace");
        enum completions_names names = r->completions->names;
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);

        (void) kind;
        if (object == NULL)
                return;
        if ((names == COMPLETIONS_PODS || names == COMPLETIONS_JOBS) && wanted != NULL &&
            strcmp(wanted, namespace_) != 0)
                return;
        if (names == COMPLETIONS_NAMESPACES)
                name = namespace_;
        else if (names == COMPLETIONS_QUALIFIED)
                name = key;
        (void) json_object_set_new(r->names, name, json_null());
}

static void on_synced(void *userdata, enum store_kind kind)
{
        struct reading *r = userdata;

        r->awaited &= ~(1u << kind);
        if (r->awaited == 0)
                store_once_answered(&r->once, 0, "");
}

static void add_collected(struct completions *c, json_t *names)
{
        const char *name;
        json_t *value;

        json_object_foreach(names, name, value) completions_add(c, name);
}

static void add_of_store(struct completions *c, const char *spec, const char *kubeconfig)
{
        struct reading r = { .completions = c, .names = json_object(), .awaited = kinds_of[c->names] };
        struct store_options options = { .spec = spec,
                                         .kubeconfig = kubeconfig,
                                         .kinds = r.awaited,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .userdata = &r };

        if (r.names != NULL && store_once_open(&r.once, &options, NULL) == 0 &&
            store_once_wait(&r.once, NULL) == 0)
                add_collected(c, r.names);
        json_decref(r.names);
}

static void add_jobs_of_folder(struct completions *c, const char *folder)
{
        const struct dirent *entry;
        DIR *opened = opendir(folder);
        bool running;

        while (opened != NULL && (entry = readdir(opened)) != NULL)
                if (jobs_folder_running(folder, entry->d_name, &running) >= 0)
                        completions_add(c, entry->d_name);
        if (opened != NULL)
                (void) closedir(opened);
}

/* A program without stores, but with a work folder or a kubeconfig, has what lies there. */
static void add_known(struct completions *c)
{
        const char *spec = options_cursor_value(&c->cursor, "store");
        const char *folder = options_cursor_value(&c->cursor, "work-dir");
        const char *kubeconfig = options_cursor_value(&c->cursor, "kubeconfig");

        if (c->names == COMPLETIONS_JOBS && spec == NULL && folder != NULL)
                add_jobs_of_folder(c, folder);
        else
                add_of_store(c, spec == NULL ? KUBERNETES : spec, kubeconfig);
        if (c->names == COMPLETIONS_JOBS && spec != NULL && store_directory(spec) != NULL)
                add_jobs_of_folder(c, store_directory(spec));
}

static int read_inventory(const struct options_cursor *cursor, struct inventory *ret)
{
        const char *root = options_cursor_value(cursor, "root");
        const char *machine = options_cursor_value(cursor, "machine");
        const struct agent_client agent = { .address = options_cursor_value(cursor, "agent"),
                                            .socket = options_cursor_value(cursor, "socket") };
        struct tree *tree = NULL;
        int r;

        if (options_find(cursor->program, "machine", strlen("machine")) == NULL)
                return agent_client_inventory(&agent, ret, NULL);
        r = open_tree(root, machine, &tree, NULL);
        if (r == 0)
                r = discovery_run(tree, NULL, ret, NULL);
        tree_close(tree);
        return r;
}

static void add_devices(struct completions *c)
{
        struct inventory inventory = { 0 };
        json_t *names = json_object();

        if (read_inventory(&c->cursor, &inventory) == 0) {
                for (size_t i = 0; c->names == COMPLETIONS_DEVICES && i < inventory.device_count; i++)
                        completions_add(c, inventory.devices[i].id);
                for (size_t i = 0; c->names == COMPLETIONS_RESOURCES && i < inventory.group_count; i++)
                        (void) json_object_set_new(names, inventory.groups[i].resource, json_null());
                add_collected(c, names);
                inventory_free(&inventory);
        }
        json_decref(names);
}

/* Of dir:PATH: the shells complete no path behind a word of ours. */
static void add_subfolders(struct completions *c)
{
        const char *typed = c->typed + strlen(DIRECTORY);
        const char *slash = strrchr(typed, '/');
        int head_bytes = slash == NULL ? 0 : (int) (slash - typed) + 1;
        char head[PATH_MAX], name[PATH_MAX];
        const struct dirent *entry;
        DIR *folder;

        if (!text_format(head, sizeof(head), "%.*s", head_bytes, typed))
                return;
        folder = opendir(head[0] == '\0' ? "." : head);
        while (folder != NULL && (entry = readdir(folder)) != NULL)
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                    text_format(name, sizeof(name), "%s%s/", head, entry->d_name))
                        completions_add(c, name);
        if (folder != NULL)
                (void) closedir(folder);
}

static void add_models(struct completions *c)
{
        for (const struct network_model *model = network_models; model->name != NULL; model++)
                completions_add(c, model->name);
}

void completion_names_add(struct completions *c)
{
        if (c->names == COMPLETIONS_SUBFOLDERS)
                add_subfolders(c);
        else if (c->names == COMPLETIONS_DEVICES || c->names == COMPLETIONS_RESOURCES)
                add_devices(c);
        else if (c->names == COMPLETIONS_MODELS)
                add_models(c);
        else if (c->names != COMPLETIONS_NONE)
                add_known(c);
}
