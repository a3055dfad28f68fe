# Protocol Buffers: lib/codec/proto/NAME.proto -> build/generated/proto/NAME.pb-c.{c,h} -> lib/remuda.a
protos       := $(patsubst lib/codec/proto/%.proto,%,$(wildcard lib/codec/proto/*.proto))
proto_header := $(protos:%=$(B)/generated/proto/%.pb-c.h)
proto_object := $(protos:%=$(B)/obj/generated/%.pb-c.o)

$(B)/generated/proto/%.pb-c.h $(B)/generated/proto/%.pb-c.c: lib/codec/proto/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=lib/codec --c_out=$(B)/generated $<

# generated code keeps its own habits: no warnings asked for
$(proto_object): $(B)/obj/generated/%.pb-c.o: $(B)/generated/proto/%.pb-c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -I$(B)/generated $(HARDEN) $(CFLAGS) -w -c -o $@ $<

$(B)/lib/remuda.a: $(proto_object)
proto_users := $(shell grep -lE '"(proto/|codec/onnx_graph)' lib/codec/*.c plugin/*.c tests/unit/*.c tests/fuzz/*.c tests/bench/*.c tests/plugin/*.c 2>/dev/null)
$(call object,$(proto_users)): $(proto_header)
