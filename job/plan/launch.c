/* Quotes words, writes a rank's environment, weighs its share, and finds its place on its node. */
#include "job/plan/launch.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "job/plan/launch_variables.h"

void launch_quote(struct text *out, const char *word)
{
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";

        if (*word != '\0' && word[strspn(word, plain)] == '\0') {
                text_append(out, word);
                return;
        }
        text_append_char(out, '\'');
        for (; *word != '\0'; word++) {
                if (*word == '\'')
                        text_append(out, "'\\''");
                else
                        text_append_char(out, *word);
        }
        text_append_char(out, '\'');
}

static void append_variable(void *userdata, const char *name, const char *value)
{
        struct text *out = userdata;

        if (out->size_bytes > 0 && out->data[out->size_bytes - 1] != '\n' &&
            out->data[out->size_bytes - 1] != ' ')
                text_append_char(out, ' ');
        text_printf(out, "%s=", name);
        if (*value != '\0')
                launch_quote(out, value);
}

void launch_environment(const struct launch_world *world, size_t index, bool torch, struct text *out)
{
        const struct launch_variables to = { append_variable, out };

        if (torch)
                launch_variables_torch(world, index, &to);
        launch_variables_own(world, index, &to);
        if (world->spec == NULL)
                return;
        launch_variables_groups(world, &to);
        launch_variables_job(world->spec, &to);
}

void launch_choice(const struct launch_world *world, const struct launch_choice *of, struct text *out)
{
        text_printf(out, "case $%s in%c", of->variable, of->gap);
        for (size_t i = of->first; i < of->end; i++) {
                struct text environment = { 0 };

                launch_environment(world, i, of->torch, &environment);
                text_printf(out, "%zu) exec env %s", i, environment.data != NULL ? environment.data : "");
                text_free(&environment);
                for (const char *const *word = world->ranks[i].command; *word != NULL; word++) {
                        text_append_char(out, ' ');
                        launch_quote(out, *word);
                }
                text_printf(out, " ;;%c", of->gap);
        }
        text_printf(out, "*) exit 64 ;;%cesac", of->gap); /* a process beyond the plan does not end well */
}

double launch_weight(uint64_t before, uint64_t share, uint64_t batch, double *left)
{
        double weight = ldexp(nearbyint(ldexp((double) share / (double) batch, 44)), -44);

        if (before + share == batch)
                weight = *left;
        *left -= weight;
        return weight;
}

struct launch_place launch_place_of(const struct launch_world *world, size_t rank)
{
        struct launch_place place = { 0 };
        const char *node = NULL;

        for (size_t i = 0; i < world->count; i++) {
                if (node == NULL || strcmp(node, world->ranks[i].node) != 0) {
                        place.node_count++;
                        if (i <= rank)
                                place.node_index = place.node_count - 1;
                }
                node = world->ranks[i].node;
                if (strcmp(node, world->ranks[rank].node) == 0) {
                        place.local_rank += i < rank;
                        place.local_size++;
                }
        }
        return place;
}

int launch_need_commands(const struct launch_world *world, struct err *err)
{
        for (size_t i = 0; i < world->count; i++)
                if (world->ranks[i].command == NULL)
                        return err_set(
                                err, -EINVAL,
                                "no program for runtime '%s', which rank %zu needs; give it below the job's "
                                "`programs:`, or a table with --programs FILE",
                                world->ranks[i].runtime, i);
        return 0;
}

bool launch_same_command(const struct launch_rank *a, const struct launch_rank *b)
{
        size_t i = 0;

        while (a->command[i] != NULL && b->command[i] != NULL && strcmp(a->command[i], b->command[i]) == 0)
                i++;
        return a->command[i] == NULL && b->command[i] == NULL;
}
