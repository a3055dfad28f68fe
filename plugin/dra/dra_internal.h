/* DRA's state, for the files that serve it; dra.c alone changes what the inventory says. */
#pragma once

#include "plugin/dra/claim.h"
#include "plugin/dra/claim_cdi.h"
#include "plugin/dra/dra.h"
#include "plugin/dra/dra_file.h"
#include "plugin/dra/slices.h"

struct dra_health_stream;
struct dra_prepare;

struct dra {
        sd_event *loop;
        struct dra_options options; /* but for what follows, borrowed pointers are dead after dra_new() */
        char node[254], cdi_directory[200];
        struct plugin_config config;
        const struct tree *tree;

        struct inventory inventory;
        struct dra_name *names;    /* of its devices */
        struct slices_fact *facts; /* of them */

        struct dra_file file;
        struct dra_registration *registration;
        struct publisher *publisher;
        struct store *store;
        struct dra_health_stream *streams;
        uint64_t told_revision; /* of the state, to the other API */
        sd_event_source *heartbeat, *refresh, *publish;
        struct dra_prepare *calls; /* whose claims are being read */
};

void dra_log(const struct dra *dra, int priority, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* dra_claims_changed() - the state is another one: slices and the other API follow. */
void dra_claims_changed(struct dra *dra);
struct claim_cdi_node dra_cdi_node(const struct dra *dra);
