/* remuda top: the devices of this node and how busy they are, live on a terminal. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/top.h"

#define CTRL_C 3

#define AT(member) offsetof(struct top_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "socket", .type = OPTION_STRING, .offset = AT(socket), .value = "PATH",
          .help = "the agent's socket (/run/remuda/agent.sock)" },
        { .name = "agent", .type = OPTION_STRING, .offset = AT(agent), .value = "ADDR:PORT",
          .help = "ask an agent there" },
        { .name = "interval", .type = OPTION_UNSIGNED, .offset = AT(interval_sec), .value = "SECONDS",
          .default_ = "2", .minimum = 1, .maximum = 3600, .help = "between two looks" },
        { .name = "count", .letter = 'n', .type = OPTION_UNSIGNED, .offset = AT(count), .value = "N",
          .help = "stop after N looks (1 where the output is no terminal)" },
        { .name = "sort", .type = OPTION_CHOICE, .offset = AT(sort),
          .value = "number|device|health|busy|used|memory|temperature|power|held", .default_ = "number",
          .help = "what is most first; of health the worst" },
        { .name = "nodes", .type = OPTION_BOOL, .offset = AT(nodes),
          .help = "the nodes of a cluster instead, a row each" },
        { .name = "store", .type = OPTION_STRING, .offset = AT(store), .value = "dir:PATH|kubernetes",
          .default_ = "kubernetes", .help = "for --nodes: the cluster" },
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = AT(kubeconfig), .value = "FILE",
          .help = "for --nodes with --store kubernetes" },
        LISTING_ARGUMENTS_ROWS(struct top_options, "table|json|yaml|name|csv"),
        { 0 },
};
/* clang-format on */

const struct option_program command_top_options = {
        .name = "remuda top",
        .summary = "Shows the devices of this node, or the nodes of a cluster, and how busy they are; q ends "
                   "it.",
        .specs = specs,
};

/* A device and what the agent's metrics say of it; NAN = nothing. */
struct row {
        const struct device *device;
        double busy, used, memory, temperature, power, held;
};

static double metric(const char *page, const char *name, const struct device *device, const char *label)
{
        char uuid[DEVICE_ID_BYTES + 16];
        const char *const labels[] = { uuid, label, NULL };
        double value;

        (void) text_format(uuid, sizeof(uuid), "uuid=\"%s\"", device->id);
        return agent_client_metric(page, name, labels, &value) ? value : NAN;
}

static struct row row_of(const struct device *d, const char *page)
{
        return (struct row){
                .device = d,
                .busy = metric(page, "remuda_device_utilization_ratio", d, "engine=\"compute\""),
                .used = metric(page, "remuda_device_memory_used_bytes", d, NULL),
                .memory = metric(page, "remuda_device_memory_total_bytes", d, NULL),
                .temperature = metric(page, "remuda_device_temperature_celsius", d, "sensor=\"core\""),
                .power = metric(page, "remuda_device_power_watts", d, NULL),
                .held = metric(page, "remuda_device_allocated", d, NULL),
        };
}

/* The larger is first. */
static double rank_of(const struct row *row, const char *sort)
{
        switch (sort[0]) {
        case 'b':
                return row->busy;
        case 'u':
                return row->used;
        case 'm':
                return row->memory;
        case 't':
                return row->temperature;
        case 'p':
                return row->power;
        case 'h':
                return sort[1] == 'e' && sort[2] == 'l'
                               ? row->held
                               : (double) row->device->health + 10.0 * !row->device->usable;
        default:
                return -(double) row->device->index;
        }
}

static int compare_rows(const void *a, const void *b, void *userdata)
{
        const char *sort = *(const char *const *) userdata;
        const struct row *x = a, *y = b;
        double p = rank_of(x, sort), q = rank_of(y, sort);
        int by_index = (x->device->index > y->device->index) - (x->device->index < y->device->index);

        if (strcmp(sort, "device") == 0)
                return strcmp(x->device->id, y->device->id);
        if (isnan(p) || isnan(q))
                return isnan(p) != isnan(q) ? isnan(p) - isnan(q) : by_index;
        return p != q ? (p < q) - (p > q) : by_index;
}

void top_number(struct table *table, double value, const char *unit)
{
        if (isnan(value))
                table_add(table, TABLE_FAINT, "%s", "");
        else
                table_add(table, TABLE_PLAIN, "%.0f%s", value, unit);
}

static enum table_colour colour_of(const struct device *d)
{
        return d->health == HEALTH_HEALTHY ? TABLE_GOOD : d->usable ? TABLE_WARN : TABLE_BAD;
}

static void add_row(struct table *table, const struct row *row)
{
        const struct device *d = row->device;

        table_add(table, TABLE_PLAIN, "%u", d->index);
        table_add(table, TABLE_PLAIN, "%s", d->id);
        table_add(table, TABLE_PLAIN, "%s", d->model);
        table_add(table, colour_of(d), "%s", device_health_name(d->health));
        table_add(table, TABLE_PLAIN, "%s", d->reason);
        top_number(table, row->busy * 100, " %");
        top_number(table, row->used / GIB, " GiB");
        top_number(table, row->memory / GIB, " GiB");
        top_number(table, row->temperature, " C");
        top_number(table, row->power, " W");
        table_add(table, isnan(row->held) ? TABLE_FAINT : TABLE_PLAIN, "%s",
                  isnan(row->held) ? ""
                  : row->held > 0  ? "yes"
                                   : "no");
}

static double known(double value)
{
        return isnan(value) ? 0 : value;
}

/* Of the devices of which it is known: a mean of busy, sums of the others. */
static void print_sums(const struct row *rows, size_t count)
{
        double usable = 0, held = 0, used = 0, memory = 0, power = 0, busy = 0, busy_known = 0,
               held_known = 0;
        CLEANUP(text_free) struct text line = { 0 };

        for (size_t i = 0; i < count; i++) {
                usable += rows[i].device->usable;
                held += known(rows[i].held) > 0;
                held_known += !isnan(rows[i].held);
                used += known(rows[i].used);
                memory += isnan(rows[i].used) ? 0 : known(rows[i].memory);
                power += known(rows[i].power);
                busy += known(rows[i].busy);
                busy_known += !isnan(rows[i].busy);
        }
        text_printf(&line, "%.0f usable", usable);
        if (held_known > 0)
                text_printf(&line, ", %.0f held", held);
        if (busy_known > 0)
                text_printf(&line, ", %.0f %% busy", busy / busy_known * 100);
        if (memory > 0)
                text_printf(&line, ", %.0f of %.0f GiB used", used / GIB, memory / GIB);
        if (power > 0)
                text_printf(&line, ", %.0f W", power);
        if (!line.failed)
                puts(line.data);
}

static int print_table(const struct inventory *inventory, const struct row *rows,
                       const struct listing_arguments *listing)
{
        static const char *const headings[] = { "#",    "DEVICE", "MODEL", "HEALTH", "REASON", "BUSY",
                                                "USED", "MEMORY", "TEMP",  "POWER",  "HELD",   NULL };
        struct table table;
        int r;

        listing_table(listing, headings, &table);
        table.width = table_width(stdout);
        for (size_t i = 0; i < inventory->device_count; i++)
                add_row(&table, &rows[i]);
        r = listing_table_end(listing, &table);
        if (r == 0 && !listing->no_headers)
                print_sums(rows, inventory->device_count);
        return r;
}

json_t *top_real(double value)
{
        return isnan(value) ? json_null() : json_real(value);
}

static json_t *row_json(const struct row *row)
{
        const struct device *d = row->device;

        return json_pack("{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "index", (int) d->index,
                         "id", d->id, "model", d->model, "health", device_health_name(d->health), "reason",
                         d->reason, "utilizationRatio", top_real(row->busy), "memoryUsedBytes",
                         top_real(row->used), "memoryBytes", top_real(row->memory), "temperatureCelsius",
                         top_real(row->temperature), "powerWatts", top_real(row->power), "held",
                         isnan(row->held) ? json_null() : json_boolean(row->held > 0));
}

static int print_document(const struct inventory *inventory, const struct row *rows, bool yaml)
{
        json_t *devices = json_array(), *document;
        int r;

        for (size_t i = 0; i < inventory->device_count; i++)
                (void) json_array_append_new(devices, row_json(&rows[i]));
        document = json_pack("{s:s, s:o}", "node", inventory->node, "devices", devices);
        r = document_print(document, yaml, JSON_REAL_PRECISION(15));
        json_decref(document);
        return r;
}

static int print_csv(const struct inventory *inventory, const struct row *rows,
                     const struct listing_arguments *listing)
{
        static const char *const names[] = { "node",
                                             "index",
                                             "device",
                                             "model",
                                             "health",
                                             "reason",
                                             "utilization_ratio",
                                             "memory_used_bytes",
                                             "memory_bytes",
                                             "temperature_celsius",
                                             "power_watts",
                                             "held",
                                             NULL };
        struct listing_csv csv;

        listing_csv(listing, names, &csv);
        for (size_t i = 0; i < inventory->device_count; i++) {
                csv_word(&csv.csv, inventory->node);
                csv_count(&csv.csv, rows[i].device->index);
                csv_word(&csv.csv, rows[i].device->id);
                csv_word(&csv.csv, rows[i].device->model);
                csv_word(&csv.csv, device_health_name(rows[i].device->health));
                csv_word(&csv.csv, rows[i].device->reason);
                csv_number(&csv.csv, rows[i].busy);
                csv_number(&csv.csv, rows[i].used);
                csv_number(&csv.csv, rows[i].memory);
                csv_number(&csv.csv, rows[i].temperature);
                csv_number(&csv.csv, rows[i].power);
                csv_word(&csv.csv, isnan(rows[i].held) ? NULL : rows[i].held > 0 ? "true" : "false");
                csv_end_row(&csv.csv);
        }
        return listing_csv_end(listing, &csv);
}

static int print_names(const struct inventory *inventory, const struct row *rows)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                listing_name(rows[i].device->id);
        return 0;
}

static int print_form(const struct inventory *inventory, const struct row *rows,
                      const struct top_options *options, bool terminal)
{
        enum listing_form form = listing_form(&options->listing);

        if (listing_is_document(form))
                return print_document(inventory, rows, form == LISTING_YAML);
        if (form == LISTING_CSV)
                return print_csv(inventory, rows, &options->listing);
        if (form == LISTING_NAME)
                return print_names(inventory, rows);
        if (terminal)
                fputs(TOP_CLEAR, stdout);
        if (!options->listing.no_headers)
                printf("node %s, %zu devices in %zu groups, class %s, pool %s\n", inventory->node,
                       inventory->device_count, inventory->group_count,
                       node_class_name(inventory->node_class), inventory->pool);
        return print_table(inventory, rows, &options->listing);
}

static int print_devices(const struct inventory *inventory, const char *page,
                         const struct top_options *options, bool terminal)
{
        CLEANUP(free_p) struct row *rows = calloc(inventory->device_count + 1, sizeof(struct row));

        if (rows == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < inventory->device_count; i++)
                rows[i] = row_of(&inventory->devices[i], page);
        if (strcmp(options->sort, "number") != 0)
                qsort_r(rows, inventory->device_count, sizeof(*rows), compare_rows, (void *) &options->sort);
        return print_form(inventory, rows, options, terminal);
}

static int look(const struct agent_client *client, const struct top_options *options, bool terminal)
{
        CLEANUP(free_p) char *page = NULL;
        struct inventory inventory = { 0 };
        struct err err = { 0 };
        int r = agent_client_request(client, "GET", "/metrics", &page, &err);

        if (r == 0)
                r = agent_client_inventory(client, &inventory, &err);
        if (r < 0)
                return options_end(&command_top_options, r, &err, stderr);
        r = print_devices(&inventory, page, options, terminal);
        (void) fflush(stdout);
        inventory_free(&inventory);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

bool top_is_end(char key)
{
        return key == 'q' || key == 'Q' || key == CTRL_C;
}

/* Waits for the next look. Return: false when the user has had enough. */
static bool wait_for_next(unsigned seconds)
{
        struct pollfd key = { .fd = STDIN_FILENO, .events = POLLIN };
        char c = 0;

        if (poll(&key, 1, (int) seconds * 1000) < 0)
                return false;
        if ((key.revents & POLLIN) != 0 && read(STDIN_FILENO, &c, 1) <= 0)
                return false;
        return !top_is_end(c);
}

static bool is_conflict(const struct top_options *options)
{
        return options->nodes && (options->socket != NULL || options->agent != NULL);
}

static int top_devices(const struct top_options *options, bool terminal, bool keys)
{
        const struct agent_client client = { .address = options->agent, .socket = options->socket };
        int code = EXIT_DONE;

        for (unsigned n = 1; code == EXIT_DONE; n++) {
                code = look(&client, options, terminal);
                if (code != EXIT_DONE || (options->count != 0 && n >= options->count))
                        break;
                if (keys ? !wait_for_next(options->interval_sec) : sleep(options->interval_sec) != 0)
                        break;
        }
        return code;
}

int command_top(int argc, char **argv)
{
        bool terminal = isatty(STDOUT_FILENO) == 1, keys = isatty(STDIN_FILENO) == 1;
        struct termios before = { 0 }, raw;
        struct top_options options = { 0 };
        int code = options_start(&command_top_options, REMUDA_VERSION, argc, argv, &options, NULL, stdout,
                                 stderr);

        if (code >= 0)
                return code;
        if (is_conflict(&options)) {
                fprintf(stderr, "remuda top: --nodes asks every agent by the API server: it excludes "
                                "--socket and --agent\n");
                return EXIT_USAGE;
        }
        terminal = terminal && listing_form(&options.listing) == LISTING_TABLE;
        if (options.count == 0 && !terminal)
                options.count = 1;
        if (terminal && keys && tcgetattr(STDIN_FILENO, &before) == 0) {
                raw = before;
                raw.c_lflag &=
                        ~(tcflag_t) (ICANON | ECHO | ISIG); /* Ctrl-C is a key: the terminal must be mended */
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        code = options.nodes ? top_nodes(&options, terminal, terminal && keys)
                             : top_devices(&options, terminal, keys);
        if (terminal && keys)
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &before);
        return code;
}
