/* Quotes words, writes a rank's environment, weighs its share, and finds its place on its node. */
#include "job/plan/launch.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "job/plan/launch_variables.h"
#include "planner/splits/pipeline_ranks.h"

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

static void keep_what_is_alike(json_t *alike, const json_t *own)
{
        json_t *value;
        const char *name;
        void *next;

        json_object_foreach_safe(alike, next, name, value)
        {
                if (!json_equal(value, json_object_get(own, name)))
                        (void) json_object_del(alike, name);
        }
}

void launch_environment_of_all(const struct launch_world *world, struct text *out)
{
        json_t *alike = json_object(), *value;
        const struct launch_variables to = launch_variables_json(alike);
        const char *name;

        launch_variables_own(world, 0, &to);
        for (size_t i = 1; i < world->count; i++) {
                json_t *own = json_object();
                const struct launch_variables of_rank = launch_variables_json(own);

                launch_variables_own(world, i, &of_rank);
                keep_what_is_alike(alike, own);
                json_decref(own);
        }
        launch_variables_groups(world, &to);
        if (world->spec != NULL)
                launch_variables_job(world->spec, &to);
        json_object_foreach(alike, name, value)
        {
                append_variable(out, name, json_string_value(value));
        }
        json_decref(alike);
}

void launch_choice(const struct launch_world *world, const struct launch_choice *of, struct text *out)
{
        size_t local = 0;

        text_printf(out, "case $%s in%c", of->variable, of->gap);
        for (size_t i = of->first; i < of->end; i++) {
                struct text environment = { 0 };

                if (of->node != NULL && strcmp(of->node, world->ranks[i].node) != 0)
                        continue;
                text_printf(out, "%zu) exec env ", of->node == NULL ? i : local++);
                if (of->node != NULL)
                        text_printf(out, "RANK=%zu ROLE_RANK=%zu ", i, i);
                launch_environment(world, i, of->torch, &environment);
                text_append(out, environment.data != NULL ? environment.data : "");
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
                bool here = strcmp(world->ranks[i].node, world->ranks[rank].node) == 0;

                if ((node == NULL || strcmp(node, world->ranks[i].node) != 0) &&
                    launch_servers_before(world, i) == 0) {
                        if (here)
                                place.node_index = place.node_count;
                        place.node_count++;
                }
                node = world->ranks[i].node;
                place.local_rank += here && i < rank;
                place.local_size += here;
        }
        return place;
}

static uint64_t first_layer(const void *world, size_t rank)
{
        const uint64_t *layers = ((const struct launch_world *) world)->ranks[rank].layers;

        return layers != NULL ? layers[0] : UINT64_MAX;
}

struct launch_pipeline launch_pipeline_of(const struct launch_world *world, size_t rank)
{
        struct launch_pipeline of = { .end = world->count };
        struct pipeline_ranks ranks;

        if (world->ranks[rank].layers == NULL)
                return of;
        ranks = pipeline_ranks_of(rank, world->count, first_layer, world);
        of = (struct launch_pipeline){ ranks.index, ranks.count, ranks.first, ranks.end, 0 };
        for (size_t i = of.first; i < of.end; i++)
                of.batch += world->ranks[i].batch;
        return of;
}

size_t launch_servers_before(const struct launch_world *world, size_t rank)
{
        size_t count = 0;

        for (size_t i = 0; i < rank && world->ranks[i].server; i++)
                count += strcmp(world->ranks[i].node, world->ranks[rank].node) == 0;
        return count;
}

size_t launch_local_rank(const struct launch_world *world, size_t rank, size_t before)
{
        return rank > 0 && strcmp(world->ranks[rank - 1].node, world->ranks[rank].node) == 0
                       ? before + 1
                       : launch_servers_before(world, rank); /* it may have come before, with servers */
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
