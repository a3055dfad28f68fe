#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "agent/tree/tree_machine.h"
#include "tests/support/machine_text.h"

void machine_begin(struct text *machine)
{
        *machine = (struct text){ 0 };
        text_append(machine, "# remuda machine 1\n");
}

void machine_line(struct text *machine, const char *fmt, ...)
{
        char line[1024];
        va_list ap;

        va_start(ap, fmt);
        assert_in_range(vsnprintf(line, sizeof(line), fmt, ap), 0, sizeof(line) - 1);
        va_end(ap);
        text_append(machine, line);
        text_append_char(machine, '\n');
}

static void append_extra(struct text *machine, const char *extra, const char *directory)
{
        for (; *extra != '\0'; extra++)
                if (*extra == '@')
                        text_append(machine, directory);
                else
                        text_append_char(machine, *extra);
        text_append_char(machine, '\n');
}

void machine_function(struct text *machine, const struct machine_function *f)
{
        char directory[256];

        (void) text_format(directory, sizeof(directory), "/sys/devices/pci%.7s/%s%s%s",
                           f->below != NULL ? f->below : f->address, f->below != NULL ? f->below : "",
                           f->below != NULL ? "/" : "", f->address);
        machine_line(machine, "/sys/bus/pci/devices/%s -> ../../..%s", f->address,
                     directory + strlen("/sys"));
        machine_line(machine, "%s/vendor = 0x%04x", directory, f->vendor);
        machine_line(machine, "%s/device = 0x%04x", directory, f->device);
        machine_line(machine, "%s/class = 0x%06x", directory, f->class_code);
        machine_line(machine, "%s/numa_node = %d", directory, f->numa);
        machine_line(machine, "%s/config hex %s", directory,
                     f->lost ? "ffffffffffffffff" : "de10302306041000");
        if (f->driver != NULL)
                machine_line(machine, "%s/driver -> ../../../bus/pci/drivers/%s", directory, f->driver);
        if (f->max_width != 0) {
                machine_line(machine, "%s/current_link_width = %u", directory, f->width);
                machine_line(machine, "%s/max_link_width = %u", directory, f->max_width);
        }
        if (f->extra != NULL)
                append_extra(machine, f->extra, directory);
}

void machine_discover(const struct text *machine, const struct discovery_options *options,
                      struct inventory *ret)
{
        struct tree *tree = NULL;
        struct err err = { 0 };

        if (machine->failed ||
            tree_machine_open_bytes("test", machine->data, machine->size_bytes, &tree, &err) < 0)
                fail_msg("%s\n%s", err.msg, machine->data);
        if (discovery_run(tree, options, ret, &err) < 0)
                fail_msg("%s", err.msg);
        tree_close(tree);
}

unsigned machine_count(const struct inventory *inventory, const char *vendor)
{
        unsigned count = 0;

        for (size_t i = 0; i < inventory->device_count; i++)
                count += vendor == NULL ? strcmp(inventory->devices[i].vendor, "cpu") != 0
                                        : strcmp(inventory->devices[i].vendor, vendor) == 0;
        return count;
}

const struct device *machine_first(const struct inventory *inventory, const char *vendor)
{
        for (size_t i = 0; i < inventory->device_count; i++)
                if (strcmp(inventory->devices[i].vendor, vendor) == 0)
                        return &inventory->devices[i];
        fail_msg("no device of vendor %s", vendor);
        return NULL;
}
