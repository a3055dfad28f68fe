/* DRA account: what the device plugin gives, noted beside the claims before it is given. */
#include "plugin/dra/dra_account.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "io/clock.h"
#include "plugin/dra/account/claim_records.h"
#include "plugin/dra/dra_internal.h"

static int check_free(const struct dra *dra, const char *const *ids, size_t count, struct err *err)
{
        for (size_t i = 0; i < count; i++) {
                const struct dra_state_claim *claim = dra_state_holder(&dra->file.state, ids[i]);

                if (claim != NULL)
                        return err_set(err, -EBUSY, "device '%.100s' is held: claim %s/%s has it", ids[i],
                                       claim->namespace_, claim->name);
        }
        return 0;
}

static int note(struct dra *dra, const char *const *ids, size_t count, uint64_t asked_usec, struct err *err)
{
        int r = check_free(dra, ids, count, err);

        if (r == 0 && dra_file_give(&dra->file, ids, count, clock_monotonic_usec(), asked_usec) < 0)
                r = err_set(err, -ENOMEM, "no memory for what is given");
        return r < 0 ? r : dra_file_save(&dra->file, err);
}

int dra_account_grant(struct dra *dra, const char *const *ids, size_t count, uint64_t asked_usec,
                      struct err *err)
{
        bool known;
        int r = dra_file_begin(&dra->file, DRA_FILE_WAIT_LAST_USEC, err);

        if (r < 0)
                return r;
        known = dra->file.revision == dra->told_revision;
        r = note(dra, ids, count, asked_usec, err);
        dra_file_end(&dra->file);
        if (r == 0 && known) /* claims are as they were */
                dra->told_revision = dra->file.revision;
        if (r == 0)
                dra_held_changed(dra);
        return r;
}

bool dra_account_granted(const struct dra *dra, const char *id, uint64_t asked_usec)
{
        return grants_has(&dra->file.state.grants, id, asked_usec);
}

bool dra_account_has_claims(const char *kubelet_root, const char *cdi_directory)
{
        struct dra_state state;
        char directory[128];
        bool any;
        int r;

        if (!text_format(directory, sizeof(directory), "%s/plugins/" DRA_NAME_DRIVER, kubelet_root))
                return false; /* nor could there be a driver */
        r = dra_file_read(directory, &state, NULL);
        if (r == 0 && state.count == 0) /* of lost files the specs are the record */
                r = claim_records_read(cdi_directory, &state, NULL, NULL);
        any = (r < 0 && r != -EACCES) || state.count > 0; /* who has what is not known; who may not look never
                                                             served */
        dra_state_free(&state);
        return any;
}
