/* remuda plan devices: which devices the plugin would prefer, with the plugin's own code. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/prefer.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/open_tree.h"
#include "cli/plan_more.h"

struct devices_options {
        const char *root, *machine, *resource, *output;
        uint64_t size;
        struct option_list must, available;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = offsetof(struct devices_options, root), .value = "DIR",
          .help = "look at DIR instead of /" },
        { .name = "machine", .type = OPTION_STRING, .offset = offsetof(struct devices_options, machine), .value = "FILE",
          .help = "look at a machine file" },
        { .name = "resource", .type = OPTION_STRING, .offset = offsetof(struct devices_options, resource),
          .value = "RESOURCE", .help = "for example nvidia.com/gpu" },
        { .name = "size", .type = OPTION_UINT64, .offset = offsetof(struct devices_options, size), .value = "N",
          .default_ = "0", .maximum = DEVICES_MAX, .help = "how many devices" },
        { .name = "must", .type = OPTION_LIST, .offset = offsetof(struct devices_options, must), .value = "ID",
          .help = "it has to be among them; again and again" },
        { .name = "available", .type = OPTION_LIST, .offset = offsetof(struct devices_options, available), .value = "ID",
          .help = "choose from these only (all usable devices); again and again" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct devices_options, output),
          .value = "text|json", .default_ = "text", .help = "json: {\"devices\":[...],\"score\":S,\"exact\":true}" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_more_devices_options = {
        .name = "remuda plan devices",
        .summary = "Which N devices of a resource the device plugin would prefer to give.",
        .after = "--resource and --size are needed; see man remuda-plan.\n",
        .specs = specs,
};

/* The resource's devices and what is asked of them. */
struct stage {
        struct inventory inventory;
        size_t *members;
        size_t count;
        struct prefer_map map;
        uint16_t *available, *must, *taken;
};

/* What must and must not be given together. */
static const char *misuse(const struct devices_options *options)
{
        if (options->root != NULL && options->machine != NULL)
                return "--root and --machine exclude each other";
        if (options->resource == NULL || options->size == 0)
                return "--resource and --size, at least 1, are needed";
        return NULL;
}

static int collect_members(struct stage *stage, const char *resource)
{
        stage->members = calloc(stage->inventory.device_count + 1, sizeof(*stage->members));
        if (stage->members == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < stage->inventory.device_count; i++) {
                const char *name = stage->inventory.devices[i].group;
                const struct device_group *group =
                        name[0] == '\0' ? NULL : inventory_find_group(&stage->inventory, name);

                if (group != NULL && strcmp(group->resource, resource) == 0)
                        stage->members[stage->count++] = i;
        }
        if (stage->count > 0)
                qsort_r(stage->members, stage->count, sizeof(size_t), prefer_map_order, &stage->inventory);
        stage->available = calloc(stage->count + 1, sizeof(*stage->available));
        stage->must = calloc(stage->count + 1, sizeof(*stage->must));
        stage->taken = calloc(stage->count + 1, sizeof(*stage->taken));
        return stage->available == NULL || stage->must == NULL || stage->taken == NULL
                       ? -ENOMEM
                       : prefer_map_init(&stage->map, &stage->inventory, stage->members, stage->count, 1);
}

static void stage_free(struct stage *stage)
{
        inventory_free(&stage->inventory);
        prefer_map_free(&stage->map);
        free(stage->members);
        free(stage->available);
        free(stage->must);
        free(stage->taken);
}

static const struct device *member(const struct stage *stage, size_t position)
{
        return &stage->inventory.devices[stage->members[position]];
}

/* Marks each id's device. Return: 0, or the exit code for an id that is not one of the resource's. */
static int mark(const struct stage *stage, const struct option_list *ids, const char *resource,
                uint16_t *marks)
{
        for (size_t i = 0; i < ids->count; i++) {
                size_t at = 0;

                while (at < stage->count && strcmp(member(stage, at)->id, ids->items[i]) != 0)
                        at++;
                if (at == stage->count) {
                        fprintf(stderr,
                                "remuda plan devices: no device '%s' in %s; `remuda devices` lists them\n",
                                ids->items[i], resource);
                        return EXIT_NOT_FOUND;
                }
                marks[at] = 1;
        }
        return 0;
}

static int print_answer(const struct stage *stage, const struct prefer_answer *answer, bool json)
{
        json_t *devices = json_array(), *object;
        char *text;

        for (size_t i = 0; i < stage->count; i++)
                if (answer->taken[i] > 0)
                        (void) json_array_append_new(devices, json_string(member(stage, i)->id));
        if (!json) {
                size_t i;
                json_t *id;

                json_array_foreach(devices, i, id) printf("%s\n", json_string_value(id));
                printf("score %llu%s\n", (unsigned long long) answer->score, answer->exact ? ", exact" : "");
                json_decref(devices);
                return EXIT_DONE;
        }
        object = json_pack("{s:o, s:I, s:b}", "devices", devices, "score", (json_int_t) answer->score,
                           "exact", answer->exact);
        text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
        json_decref(object);
        if (text == NULL)
                return EXIT_FAILED;
        printf("%s\n", text);
        free(text);
        return EXIT_DONE;
}

static int choose(struct stage *stage, const struct devices_options *options)
{
        struct prefer_request request = { .available = stage->available,
                                          .must = stage->must,
                                          .size = (size_t) options->size };
        struct prefer_answer answer = { .taken = stage->taken };
        size_t available = 0, must = 0;

        for (size_t i = 0; i < stage->count; i++) {
                if (options->available.count == 0)
                        stage->available[i] = 1;
                if (!member(stage, i)->usable)
                        stage->available[i] = 0;
                if (stage->must[i] > 0)
                        stage->available[i] = 1;
                available += stage->available[i];
                must += stage->must[i];
        }
        if (must > options->size) {
                fprintf(stderr, "remuda plan devices: --must names %zu devices, --size is %" PRIu64 "\n",
                        must, options->size);
                return EXIT_USAGE;
        }
        if (available < options->size) {
                fprintf(stderr,
                        "remuda plan devices: %zu of the %zu devices of %s are available, %" PRIu64
                        " are wanted\n",
                        available, stage->count, options->resource, options->size);
                return EXIT_FAILED;
        }
        if (prefer_choose(&stage->map, &request, &answer) < 0) {
                fputs("remuda plan devices: no memory\n", stderr);
                return EXIT_FAILED;
        }
        return print_answer(stage, &answer, strcmp(options->output, "json") == 0);
}

static int run(const struct devices_options *options)
{
        CLEANUP(stage_free) struct stage stage = { 0 };
        struct tree *tree;
        struct err err = { 0 };
        int r = open_tree(options->root, options->machine, &tree, &err);

        if (r >= 0) {
                r = discovery_run(tree, NULL, &stage.inventory, &err);
                tree_close(tree);
        }
        if (r < 0) {
                fprintf(stderr, "remuda plan devices: %s\n", err.msg);
                return r == -E2BIG ? EXIT_FAILED : exit_code_of(r); /* larger than any machine */
        }
        if (collect_members(&stage, options->resource) < 0) {
                fputs("remuda plan devices: no memory\n", stderr);
                return EXIT_FAILED;
        }
        if (stage.count == 0) {
                fprintf(stderr,
                        "remuda plan devices: this machine has no %s; `remuda devices` lists what it has\n",
                        options->resource);
                return EXIT_NOT_FOUND;
        }
        r = mark(&stage, &options->must, options->resource, stage.must);
        if (r == 0)
                r = mark(&stage, &options->available, options->resource, stage.available);
        return r != 0 ? r : choose(&stage, options);
}

int plan_more_devices(int argc, char **argv, const struct plan_host *host)
{
        struct devices_options options = { 0 };
        size_t operands = 0;
        const char *wrong;
        int r = options_start(&plan_more_devices_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        (void) host;
        if (r >= 0)
                return r;
        wrong = misuse(&options);
        if (wrong == NULL)
                return run(&options);
        fprintf(stderr, "remuda plan devices: %s; `remuda plan devices --help` says what it takes\n", wrong);
        return EXIT_USAGE;
}
