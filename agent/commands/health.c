/* remuda health: what is not well on this node, and an operator's word about it. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_field.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/duration.h"
#include "cli/command/listing.h"
#include "cli/command/watching.h"
#include "io/clock.h"

struct health_options {
        const char *socket, *agent;
        struct listing_arguments listing;
        bool all;
};

#define AT(member) offsetof(struct health_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "socket", .type = OPTION_STRING, .offset = AT(socket), .value = "PATH",
          .help = "the agent's socket (/run/remuda/agent.sock)" },
        { .name = "agent", .type = OPTION_STRING, .offset = AT(agent), .value = "ADDR:PORT",
          .help = "ask an agent there (it takes no `clear`)" },
        LISTING_ARGUMENTS_ROWS(struct health_options, "table|json|yaml|name|csv"),
        LISTING_WATCH_ROWS(struct health_options),
        { .name = "all", .letter = 'a', .type = OPTION_BOOL, .offset = AT(all),
          .help = "healthy devices too" },
        { 0 },
};
/* clang-format on */

const struct option_program command_health_options = {
        .name = "remuda health",
        .operands = "[clear ID...]",
        .operands_max = 1024,
        .summary =
                "Lists the devices of this node that are not healthy, why, and since when; exit 4 when there "
                "are any.\n"
                "`clear` forgets the faults of devices, ends a quarantine, and drops devices that have left.",
        .specs = specs,
};

/* Kept out on purpose is not ill. */
static bool is_ill(const struct device *d)
{
        return d->health != HEALTH_HEALTHY && d->group[0] != '\0';
}

static bool is_listed(const struct health_options *options, const struct device *d)
{
        return options->all || d->health != HEALTH_HEALTHY ||
               listing_is_known(&options->listing, d->id); /* it is well again: that is news of a watch */
}

/* Since then; NAN = it is not known, or the clock was set back. */
static double seconds_since(uint64_t usec)
{
        uint64_t now = clock_realtime_usec();

        return usec == 0 || usec > now ? NAN : (double) (now - usec) / 1e6;
}

static int print_table(const struct inventory *inventory, const struct health_options *options)
{
        static const char *const headings[] = { "DEVICE", "GROUP",  "PCI",  "HEALTH",  "USABLE",
                                                "FOR",    "REASON", "RULE", "MESSAGE", NULL };
        CLEANUP(table_free) struct table table;
        size_t rows = 0;

        listing_table(&options->listing, headings, &table);
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];
                char since[DURATION_BYTES];

                if (!is_listed(options, d))
                        continue;
                rows++;
                table_add(&table, TABLE_PLAIN, "%s", d->id);
                table_add(&table, TABLE_PLAIN, "%s", d->group);
                table_add(&table, TABLE_PLAIN, "%s", d->pci);
                table_add(&table,
                          d->health == HEALTH_HEALTHY ? TABLE_GOOD
                          : d->usable || !is_ill(d)   ? TABLE_WARN
                                                      : TABLE_BAD,
                          "%s", device_health_name(d->health));
                table_add(&table, TABLE_PLAIN, "%s", d->usable ? "yes" : "no");
                table_add(&table, TABLE_PLAIN, "%s", duration_format(since, seconds_since(d->since_usec)));
                table_add(&table, TABLE_PLAIN, "%s", d->reason);
                table_add(&table, TABLE_FAINT, "%s", d->rule);
                table_add(&table, TABLE_FAINT, "%s", d->message);
        }
        if (rows == 0 && options->listing.watching == NULL)
                printf("%zu devices, all healthy\n", inventory->device_count);
        else if (rows == 0 && !options->listing.watching->begun)
                fprintf(stderr, "%zu devices, all healthy\n", inventory->device_count);
        else
                return listing_table_end(&options->listing, &table);
        return 0;
}

static int print_csv(const struct inventory *inventory, const struct health_options *options)
{
        static const char *const names[] = { "device", "group",  "pci",
                                             "health", "usable", "since_unix_seconds",
                                             "reason", "rule",   "message",
                                             NULL };
        struct listing_csv rows;
        struct csv *csv = &rows.csv;

        listing_csv(&options->listing, names, &rows);
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];

                if (!is_listed(options, d))
                        continue;
                csv_word(csv, d->id);
                csv_word(csv, d->group);
                csv_word(csv, d->pci);
                csv_word(csv, device_health_name(d->health));
                csv_word(csv, d->usable ? "true" : "false");
                csv_number(csv, d->since_usec == 0 ? NAN : (double) d->since_usec / 1e6);
                csv_word(csv, d->reason);
                csv_word(csv, d->rule);
                csv_word(csv, d->message);
                csv_end_row(csv);
        }
        return listing_csv_end(&options->listing, &rows);
}

static int print_names(const struct inventory *inventory, const struct health_options *options)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                if (is_listed(options, &inventory->devices[i]))
                        listing_name(inventory->devices[i].id);
        return 0;
}

static int print_document(const struct inventory *inventory, bool yaml)
{
        json_t *object = inventory_json_encode(inventory);
        struct json_field root = json_field_root(object), status = json_field_get(&root, "status");
        int r = document_print(json_field_get(&status, "devices").value, yaml, 0);

        json_decref(object);
        return r;
}

static int print_objects(const struct inventory *inventory, const struct listing_arguments *listing)
{
        json_t *node = inventory_json_encode(inventory);
        int r = listing_array(listing, json_object_get(json_object_get(node, "status"), "devices"), "id");

        json_decref(node);
        return r < 0 ? r : listing_objects_end(listing);
}

static int print(const struct inventory *inventory, const struct health_options *options)
{
        enum listing_form form = listing_form(&options->listing);

        if (options->listing.watching != NULL && (listing_is_document(form) || form == LISTING_NAME))
                return print_objects(inventory, &options->listing);
        if (listing_is_document(form))
                return print_document(inventory, form == LISTING_YAML);
        if (form == LISTING_CSV)
                return print_csv(inventory, options);
        return form == LISTING_NAME ? print_names(inventory, options) : print_table(inventory, options);
}

static int show(const struct agent_client *client, const struct health_options *options)
{
        struct inventory inventory;
        struct err err = { 0 };
        size_t ill = 0;
        int r = agent_client_inventory(client, &inventory, &err);

        if (r < 0)
                return options_end(&command_health_options, r, &err, stderr);
        for (size_t i = 0; i < inventory.device_count; i++)
                ill += is_ill(&inventory.devices[i]);
        r = print(&inventory, options);
        inventory_free(&inventory);
        return r < 0 ? EXIT_FAILED : ill > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
}

struct health_watch {
        const struct agent_client *client;
        const struct health_options *options;
};

static int look(void *userdata, struct err *err)
{
        const struct health_watch *w = userdata;
        struct inventory inventory;
        int r = agent_client_inventory(w->client, &inventory, err);

        if (r < 0)
                return r;
        r = print(&inventory, w->options);
        inventory_free(&inventory);
        return r;
}

/* An agent tells nobody of changes: it is asked. */
static int watch(const struct agent_client *client, struct health_options *options)
{
        static const char *const keys[] = { "DEVICE", "device", NULL };
        static const char *const ageing[] = { "FOR", NULL };
        struct listing_watch rows = { .keys = keys, .ageing = ageing };
        struct health_watch w = { .client = client, .options = options };
        struct watching watching = { .program = &command_health_options,
                                     .listing = &options->listing,
                                     .look = look,
                                     .userdata = &w,
                                     .period_usec = WATCHING_PERIOD_USEC,
                                     .rows = &rows };

        return watching_run(&watching);
}

static int clear_one(const struct agent_client *client, const char *id)
{
        CLEANUP(free_p) char *answer = NULL, *escaped = agent_client_escape(id);
        struct err err = { 0 };
        char path[512];
        int r;

        if (escaped == NULL || !text_format(path, sizeof(path), "/v1/health/clear?device=%s", escaped))
                r = err_set(&err, -EINVAL, "'%.60s...' is no device's id", id);
        else
                r = agent_client_request(client, "POST", path, &answer, &err);
        if (r < 0)
                return options_end(&command_health_options, r, &err, stderr);
        printf("%s: cleared\n", id);
        return EXIT_DONE;
}

int command_health(int argc, char **argv)
{
        struct health_options options = { 0 };
        size_t operands = 0;
        int code = options_start(&command_health_options, REMUDA_VERSION, argc, argv, &options, &operands,
                                 stdout, stderr);
        const struct agent_client client = { .address = options.agent, .socket = options.socket };

        if (code >= 0)
                return code;
        if (operands == 0)
                return options.listing.watch ? watch(&client, &options) : show(&client, &options);
        if (strcmp(argv[1], "clear") != 0 || operands < 2) {
                fprintf(stderr, "remuda health: it takes nothing, or `clear ID...`\n");
                return EXIT_USAGE;
        }
        code = EXIT_DONE;
        for (size_t i = 2; i <= operands; i++) {
                int one = clear_one(&client, argv[i]);

                code = one != EXIT_DONE ? one : code;
        }
        return code;
}
