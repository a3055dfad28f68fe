/* remuda plan devices: which devices the plugin would prefer, with the plugin's own code. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/prefer.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "cli/command/open_tree.h"
#include "cli/plan_more.h"

struct ids {
        const char **items;
        size_t count;
};

struct devices_question {
        const char *root, *machine, *resource, *size_text;
        uint64_t size;
        struct ids must, available;
        bool json;
};

/* The resource's devices and what is asked of them. */
struct stage {
        struct inventory inventory;
        size_t *members;
        size_t count;
        struct prefer_map map;
        uint16_t *available, *must, *taken;
};

static void print_help(FILE *out)
{
        fputs("usage: remuda plan devices [--root DIR | --machine FILE] --resource R --size N\n"
              "                           [--must ID]... [--available ID]... [-o text|json]\n"
              "\n"
              "Says which N devices of resource R the device plugin would prefer to give.\n"
              "\n"
              "  --root DIR      look at DIR instead of /\n"
              "  --machine FILE  look at a recorded machine\n"
              "  --resource R    for example nvidia.com/gpu\n"
              "  --size N        how many devices\n"
              "  --must ID       it has to be among them; again and again\n"
              "  --available ID  choose from these only (all usable devices); again and again\n"
              "  -o FORMAT       text (default) or json: {\"devices\":[...],\"score\":S,\"exact\":true}\n",
              out);
}

static int refuse_usage(const char *what, const char *value)
{
        fprintf(stderr, "remuda plan devices: %s%s%s%s; `remuda plan devices --help` says what it takes\n",
                what, value == NULL ? "" : " '", value == NULL ? "" : value, value == NULL ? "" : "'");
        return EXIT_USAGE;
}

static int take_option(int c, struct devices_question *question)
{
        switch (c) {
        case 'r':
                question->root = optarg;
                return -1;
        case 'm':
                question->machine = optarg;
                return -1;
        case 'R':
                question->resource = optarg;
                return -1;
        case 's':
                question->size_text = optarg;
                return -1;
        case 'M':
                question->must.items[question->must.count++] = optarg;
                return -1;
        case 'a':
                question->available.items[question->available.count++] = optarg;
                return -1;
        case 'o':
                question->json = strcmp(optarg, "json") == 0;
                return question->json || strcmp(optarg, "text") == 0
                               ? -1
                               : refuse_usage("-o takes text or json, not", optarg);
        case 'h':
                print_help(stdout);
                return EXIT_DONE;
        default:
                return refuse_usage("that cannot be", NULL);
        }
}

/* Return: -1 to go on, or an exit code. */
static int parse_arguments(int argc, char **argv, struct devices_question *question)
{
        static const struct option longs[] = {
                { "root", required_argument, NULL, 'r' },
                { "machine", required_argument, NULL, 'm' },
                { "resource", required_argument, NULL, 'R' },
                { "size", required_argument, NULL, 's' },
                { "must", required_argument, NULL, 'M' },
                { "available", required_argument, NULL, 'a' },
                { "output", required_argument, NULL, 'o' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        int c, r = -1;

        optind = 1;
        while (r < 0 && (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1)
                r = take_option(c, question);
        if (r >= 0)
                return r;
        if (optind < argc)
                return refuse_usage("unexpected argument", argv[optind]);
        if (question->root != NULL && question->machine != NULL)
                return refuse_usage("--root and --machine exclude each other", NULL);
        if (question->resource == NULL || question->size_text == NULL)
                return refuse_usage("--resource and --size are needed", NULL);
        if (text_parse_uint64(question->size_text, &question->size) < 0 || question->size < 1 ||
            question->size > DEVICES_MAX)
                return refuse_usage("--size takes a whole number from 1 to 1024, not", question->size_text);
        return -1;
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
                qsort_r(stage->members, stage->count, sizeof(size_t), prefer_order, &stage->inventory);
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
static int mark(const struct stage *stage, const struct ids *ids, const char *resource, uint16_t *marks)
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

static int choose(struct stage *stage, const struct devices_question *question)
{
        struct prefer_request request = { .available = stage->available,
                                          .must = stage->must,
                                          .size = (size_t) question->size };
        struct prefer_answer answer = { .taken = stage->taken };
        size_t available = 0, must = 0;

        for (size_t i = 0; i < stage->count; i++) {
                if (question->available.count == 0)
                        stage->available[i] = 1;
                if (!member(stage, i)->usable)
                        stage->available[i] = 0;
                if (stage->must[i] > 0)
                        stage->available[i] = 1;
                available += stage->available[i];
                must += stage->must[i];
        }
        if (must > question->size) {
                fprintf(stderr, "remuda plan devices: --must names %zu devices, --size is %s\n", must,
                        question->size_text);
                return EXIT_USAGE;
        }
        if (available < question->size) {
                fprintf(stderr,
                        "remuda plan devices: %zu of the %zu devices of %s are available, %s are wanted\n",
                        available, stage->count, question->resource, question->size_text);
                return EXIT_FAILED;
        }
        if (prefer_choose(&stage->map, &request, &answer) < 0) {
                fputs("remuda plan devices: no memory\n", stderr);
                return EXIT_FAILED;
        }
        return print_answer(stage, &answer, question->json);
}

static int run(const struct devices_question *question)
{
        CLEANUP(stage_free) struct stage stage = { 0 };
        struct tree *tree;
        struct err err = { 0 };
        int r = open_tree(question->root, question->machine, &tree, &err);

        if (r >= 0) {
                r = discover(tree, NULL, &stage.inventory, &err);
                tree_close(tree);
        }
        if (r < 0) {
                fprintf(stderr, "remuda plan devices: %s\n", err.msg);
                return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
        }
        if (collect_members(&stage, question->resource) < 0) {
                fputs("remuda plan devices: no memory\n", stderr);
                return EXIT_FAILED;
        }
        if (stage.count == 0) {
                fprintf(stderr,
                        "remuda plan devices: this machine has no %s; `remuda devices` lists what it has\n",
                        question->resource);
                return EXIT_NOT_FOUND;
        }
        r = mark(&stage, &question->must, question->resource, stage.must);
        if (r == 0)
                r = mark(&stage, &question->available, question->resource, stage.available);
        return r != 0 ? r : choose(&stage, question);
}

int plan_more_devices(int argc, char **argv, const struct plan_host *host)
{
        CLEANUP(free_p) const char **must = calloc((size_t) argc, sizeof(*must));
        CLEANUP(free_p) const char **available = calloc((size_t) argc, sizeof(*available));
        struct devices_question question = { .must.items = must, .available.items = available };
        int r;

        (void) host;
        if (must == NULL || available == NULL)
                return EXIT_FAILED;
        r = parse_arguments(argc, argv, &question);
        return r >= 0 ? r : run(&question);
}
