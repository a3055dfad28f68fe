/* DRA's state, for the files that serve it; dra.c alone changes what the inventory says. */
#pragma once

#include "plugin/dra/account/dra_file.h"
#include "plugin/dra/claim.h"
#include "plugin/dra/claim_cdi.h"
#include "plugin/dra/claim_lookup.h"
#include "plugin/dra/dra.h"
#include "plugin/dra/refusals.h"
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
        struct bundles bundles;    /* of them */
        struct slices_fact *facts; /* of them */
        bool specs_settled;        /* those of claims are as the account, once since the start */
        char trouble[480];         /* why not, as it was logged */

        struct dra_file file;
        struct dra_status status; /* but for what the parts count themselves */
        struct dra_registration *registration;
        struct publisher *publisher;
        struct store *store;
        struct dra_health_stream *streams;
        uint64_t told_revision; /* of the state, to the other API */
        bool withdrawn;         /* nothing is offered: what is prepared is served */
        sd_event_source *heartbeat, *refresh, *publish;
        struct refusals refusals;
        struct dra_prepare *calls;   /* whose claims are being read */
        struct claim_lookup earlier; /* of claims of an earlier boot */
        uint64_t earlier_usec;       /* the last; 0 = none was */
        bool claims_listed;          /* a claim that the store does not have is not there */
};

void dra_log(const struct dra *dra, int priority, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* dra_claims_changed() - the state is another one: slices and the other API follow. */
void dra_claims_changed(struct dra *dra);

/* dra_look_for_earlier() - claims that the account has from before the node's last start are asked for at the
 * store, unless that was done less than so long ago. No container of then runs; a claim whose pod is started
 * again is prepared anew, for a kubelet that has been started remembers of none that it is prepared, and is
 * of this boot then. One whose Unprepare was lost with the power nobody would give up. */
void dra_look_for_earlier(struct dra *dra, uint64_t since_usec);

/* dra_reached() - the kubelet can call the driver: slices that were too early may come. */
void dra_reached(const struct dra *dra);
struct claim_cdi_node dra_cdi_node(const struct dra *dra);
