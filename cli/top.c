/* remuda top: the devices of this node and how busy they are, live on a terminal. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "cli/command/commands.h"
#include "cli/command/table.h"

#define CTRL_C 3

struct top_options {
        const char *socket, *agent;
        unsigned interval_sec, count;
};

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
        { 0 },
};
/* clang-format on */

const struct option_program command_top_options = {
        .name = "remuda top",
        .summary = "Shows the devices of this node, their health and how busy they are; q ends it.",
        .specs = specs,
};

static void add_metric(struct table *table, const char *page, const char *name, const char *uuid,
                       const char *label, double scale, const char *unit)
{
        const char *const labels[] = { uuid, label, NULL };
        double value;

        if (agent_client_metric(page, name, labels, &value))
                table_add(table, TABLE_PLAIN, "%.0f%s", value * scale, unit);
        else
                table_add(table, TABLE_FAINT, "%s", "");
}

static enum table_colour colour_of(const struct device *d)
{
        return d->health == HEALTH_HEALTHY ? TABLE_GOOD : d->usable ? TABLE_WARN : TABLE_BAD;
}

static int print_devices(const struct inventory *inventory, const char *page, bool colour)
{
        static const char *const headings[] = { "#",    "DEVICE", "MODEL", "HEALTH", "REASON", "BUSY",
                                                "USED", "MEMORY", "TEMP",  "POWER",  "HELD",   NULL };
        CLEANUP(table_free) struct table table = { 0 };

        table_begin(&table, headings);
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];
                char uuid[DEVICE_ID_BYTES + 16];
                const char *const labels[] = { uuid, NULL };
                double held = 0;

                (void) text_format(uuid, sizeof(uuid), "uuid=\"%s\"", d->id);
                table_add(&table, TABLE_PLAIN, "%u", d->index);
                table_add(&table, TABLE_PLAIN, "%s", d->id);
                table_add(&table, TABLE_PLAIN, "%s", d->model);
                table_add(&table, colour_of(d), "%s", device_health_name(d->health));
                table_add(&table, TABLE_PLAIN, "%s", d->reason);
                add_metric(&table, page, "remuda_device_utilization_ratio", uuid, "engine=\"compute\"", 100,
                           " %");
                add_metric(&table, page, "remuda_device_memory_used_bytes", uuid, NULL, 1.0 / (1 << 30),
                           " GiB");
                add_metric(&table, page, "remuda_device_memory_total_bytes", uuid, NULL, 1.0 / (1 << 30),
                           " GiB");
                add_metric(&table, page, "remuda_device_temperature_celsius", uuid, "sensor=\"core\"", 1,
                           " C");
                add_metric(&table, page, "remuda_device_power_watts", uuid, NULL, 1, " W");
                if (agent_client_metric(page, "remuda_device_allocated", labels, &held))
                        table_add(&table, TABLE_PLAIN, "%s", held > 0 ? "yes" : "no");
                else
                        table_add(&table, TABLE_FAINT, "%s", "");
        }
        return table_print(&table, colour, stdout);
}

static int look(const struct agent_client *client, bool terminal)
{
        CLEANUP(free_p) char *page = NULL;
        struct inventory inventory = { 0 };
        struct err err = { 0 };
        int r = agent_client_request(client, "GET", "/metrics", &page, &err);

        if (r == 0)
                r = agent_client_inventory(client, &inventory, &err);
        if (r < 0)
                return options_end(&command_top_options, r, &err, stderr);
        if (terminal)
                fputs("\033[H\033[2J", stdout); /* home, and an empty screen */
        printf("node %s, %zu devices in %zu groups, class %s, pool %s\n", inventory.node,
               inventory.device_count, inventory.group_count, node_class_name(inventory.node_class),
               inventory.pool);
        (void) print_devices(&inventory, page, table_wants_colour(stdout));
        (void) fflush(stdout);
        inventory_free(&inventory);
        return EXIT_DONE;
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
        return c != 'q' && c != 'Q' && c != CTRL_C;
}

int command_top(int argc, char **argv)
{
        bool terminal = isatty(STDOUT_FILENO) == 1, keys = isatty(STDIN_FILENO) == 1;
        struct termios before = { 0 }, raw;
        struct top_options options;
        int code = options_start(&command_top_options, REMUDA_VERSION, argc, argv, &options, NULL, stdout,
                                 stderr);
        const struct agent_client client = { .address = options.agent, .socket = options.socket };

        if (code >= 0)
                return code;
        if (options.count == 0 && !terminal)
                options.count = 1;
        if (terminal && keys && tcgetattr(STDIN_FILENO, &before) == 0) {
                raw = before;
                raw.c_lflag &=
                        ~(tcflag_t) (ICANON | ECHO | ISIG); /* Ctrl-C is a key: the terminal must be mended */
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        code = EXIT_DONE;
        for (unsigned n = 1; code == EXIT_DONE; n++) {
                code = look(&client, terminal);
                if (code != EXIT_DONE || (options.count != 0 && n >= options.count))
                        break;
                if (keys ? !wait_for_next(options.interval_sec) : sleep(options.interval_sec) != 0)
                        break;
        }
        if (terminal && keys)
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &before);
        return code;
}
