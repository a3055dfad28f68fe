/* Sums over the samples of a name; memory is matched by the device's uuid. */
#include "cli/node_figures.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "cli/command/agent_client.h"

static double plus(double sum, double more)
{
        return isnan(sum) ? more : isnan(more) ? sum : sum + more;
}

/* `uuid="..."` as it stands in the line. */
static bool uuid_of(const char *line, char *ret, size_t ret_bytes)
{
        size_t length = strcspn(line, "\n");
        const char *at = memmem(line, length, "uuid=\"", 6),
                   *end = at == NULL ? NULL : memchr(at + 6, '"', length - (size_t) (at + 6 - line));

        return end != NULL && text_format(ret, ret_bytes, "%.*s", (int) (end + 1 - at), at);
}

/* Of whom it is not known how much there is, it says nothing that it is used. */
static void add_memory(const char *page, const char *line, double used, struct node_figures *ret)
{
        char uuid[DEVICE_ID_BYTES + 16];
        const char *const labels[] = { uuid, NULL };
        double memory;

        if (!uuid_of(line, uuid, sizeof(uuid)) ||
            !agent_client_metric(page, "remuda_device_memory_total_bytes", labels, &memory))
                return;
        ret->used = plus(ret->used, used);
        ret->memory = plus(ret->memory, memory);
}

static const char *next(const char *at, const char *name, const char *label, double *ret)
{
        const char *const labels[] = { label, NULL };

        return agent_client_find_metric(at, name, labels, ret);
}

/* What comes after a line. */
static const char *after(const char *line)
{
        return line + strcspn(line, "\n");
}

struct node_figures node_figures_read(const char *page)
{
        struct node_figures ret = NODE_FIGURES_NONE;
        double value;

        for (const char *at = page;
             (at = next(at, "remuda_device_utilization_ratio", "engine=\"compute\"", &value)) != NULL;
             at = after(at)) {
                ret.busy = plus(ret.busy, value);
                ret.busy_devices++;
        }
        if (ret.busy_devices > 0)
                ret.busy /= (double) ret.busy_devices;
        for (const char *at = page; (at = next(at, "remuda_device_memory_used_bytes", NULL, &value)) != NULL;
             at = after(at))
                add_memory(page, at, value, &ret);
        for (const char *at = page;
             (at = next(at, "remuda_device_temperature_celsius", "sensor=\"core\"", &value)) != NULL;
             at = after(at))
                ret.temperature = fmax(ret.temperature, value);
        for (const char *at = page; (at = next(at, "remuda_device_power_watts", NULL, &value)) != NULL;
             at = after(at))
                ret.power = plus(ret.power, value);
        return ret;
}

void node_figures_add(struct node_figures *sum, const struct node_figures *more)
{
        size_t devices = sum->busy_devices + more->busy_devices;

        if (more->busy_devices > 0)
                sum->busy = ((sum->busy_devices > 0 ? sum->busy * (double) sum->busy_devices : 0) +
                             more->busy * (double) more->busy_devices) /
                            (double) devices;
        sum->busy_devices = devices;
        sum->used = plus(sum->used, more->used);
        sum->memory = plus(sum->memory, more->memory);
        sum->temperature = fmax(sum->temperature, more->temperature);
        sum->power = plus(sum->power, more->power);
}
