/* Opened once to learn the device, and again where something is known of it. */
#include "trainer/tuned_backend.h"

int tuned_backend_open(const struct train_options *o, struct backend_options *b, struct backend *ret,
                       struct preset *ret_preset, struct err *err)
{
        const struct tunable_rows *tunables = backend_linked.tunables;
        int r = backend_open(&backend_linked, b, ret, err);

        *ret_preset = preset_none();
        if (r < 0 || o->no_preset)
                return r;
        *ret_preset = preset_find(o->model != NULL ? o->model : "");
        if (!preset_remembered(o->cache, ret->device_model, tunables, b, b->tuned, ret_preset->tuned_by))
                return 0;
        backend_close(ret);
        return backend_open(&backend_linked, b, ret, err);
}
