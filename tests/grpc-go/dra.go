package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// ---- a kubelet's half of Dynamic Resource Allocation --------------------------------------------------------------

// known says that a message has no field which the kubelet's own types do not have.
func known(m proto.Message) bool {
	good := true
	err := protorange.Range(m.ProtoReflect(), func(values protopath.Values) error {
		if at, is := values.Index(-1).Value.Interface().(protoreflect.Message); is && len(at.GetUnknown()) > 0 {
			good = false
		}
		return nil
	})
	return good && err == nil
}

// within is a context that ends by itself; a call that takes longer has failed for good.
func within(seconds int) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func dial(path string) *grpc.ClientConn {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return conn
}

// claim is one of NAMESPACE/UID/NAME.
func claim(words string) *drav1.Claim {
	part := strings.Split(words, "/")
	return &drav1.Claim{Namespace: part[0], Uid: part[1], Name: part[2]}
}

func claimsOf(words []string) (out []*drav1.Claim) {
	for _, w := range words {
		out = append(out, claim(w))
	}
	return
}

// beta is the same claims in the older types.
func beta(claims []*drav1.Claim) (out []*drav1beta1.Claim) {
	for _, c := range claims {
		out = append(out, &drav1beta1.Claim{Namespace: c.Namespace, Uid: c.Uid, Name: c.Name})
	}
	return
}

// checkRegistration is the kubelet's plugin watcher. Return: where the driver serves; "" = it cannot be gone on with.
func checkRegistration(socket string) string {
	conn := dial(socket)
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	info, err := client.GetInfo(within(30), &registration.InfoRequest{})
	ok(err == nil && info.Type == registration.DRAPlugin && info.Name == "remuda.dev" && known(info), "registers as a DRA plugin of its name", info, err)
	if err != nil {
		return ""
	}
	services := []string{drav1.DRAPluginService, drav1beta1.DRAPluginService, healthv1.DRAResourceHealthService, healthv1alpha1.DRAResourceHealthService}
	ok(slices.Equal(info.SupportedVersions, services), "with the services that the kubelet's own constants name", info.SupportedVersions)
	_, err = client.NotifyRegistrationStatus(within(30), &registration.RegistrationStatus{Error: "nicht jetzt: 50 % müde"})
	ok(err == nil, "a refusal is taken", err)
	_, err = client.NotifyRegistrationStatus(within(30), &registration.RegistrationStatus{PluginRegistered: true})
	ok(err == nil, "and that it is registered", err)
	err = conn.Invoke(within(30), "/pluginregistration.Registration/Nothing", &registration.InfoRequest{}, &registration.PluginInfo{})
	ok(is(err, codes.Unimplemented), "another method is Unimplemented", err)
	return info.Endpoint
}

// checkClaims asks both versions of the service about the same claims: of two devices, of a share, some of one each, and one that cannot be
// prepared.
func checkClaims(conn *grpc.ClientConn, claims []*drav1.Claim) {
	v1, v1beta1 := drav1.NewDRAPluginClient(conn), drav1beta1.NewDRAPluginClient(conn)
	bad := claims[len(claims)-1]
	all, err := v1.NodePrepareResources(within(60), &drav1.NodePrepareResourcesRequest{Claims: claims})
	ok(err == nil && known(all) && len(all.Claims) == len(claims), "v1: every claim of a call has its entry, in fields that the kubelet knows", all, err)
	if err != nil {
		return
	}
	two, share := all.Claims[claims[0].Uid], all.Claims[claims[1].Uid]
	ok(two != nil && two.Error == "" && len(two.Devices) == 2 && two.Devices[0].PoolName == "n1" && slices.Equal(two.Devices[0].RequestNames, []string{"gpu"}) &&
		two.Devices[0].DeviceName != two.Devices[1].DeviceName && len(two.Devices[0].CdiDeviceIds) == 2 && len(two.Devices[1].CdiDeviceIds) == 1 &&
		two.Devices[0].GetShareId() == "", "v1: two devices with their request, pool, names and CDI names", two)
	ok(share != nil && share.Error == "" && len(share.Devices) == 1 && share.Devices[0].GetShareId() == "half", "v1: a share has its id", share)
	refused := all.Claims[bad.Uid]
	ok(refused != nil && len(refused.Devices) == 0 && strings.Contains(refused.Error, "'gpu-nobody' is not one of node n1"), "v1: a refusal is a sentence and no device", refused)

	older, err := v1beta1.NodePrepareResources(within(60), &drav1beta1.NodePrepareResourcesRequest{Claims: beta(claims)})
	same := err == nil && len(older.Claims) == len(claims)
	for uid, entry := range all.Claims {
		same = same && (known(older.Claims[uid]) || uid == claims[1].Uid) // of a share's id v1beta1 has no word, and a kubelet steps over it
		one, _ := proto.MarshalOptions{Deterministic: true}.Marshal(entry)
		two, _ := proto.MarshalOptions{Deterministic: true}.Marshal(older.GetClaims()[uid])
		same = same && bytes.Equal(one, two)
	}
	ok(same, "v1beta1: the same answer to the byte, in fields that the kubelet knows but for a share's id", older, err)

	_, err = v1.NodePrepareResources(within(30), &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{Namespace: "default", Uid: "../../etc", Name: "x"}}})
	ok(is(err, codes.InvalidArgument), "a uid that is none is InvalidArgument", err)
	_, err = v1.NodePrepareResources(within(30), &drav1.NodePrepareResourcesRequest{Claims: claims}, grpc.UseCompressor("gzip"))
	ok(is(err, codes.Unimplemented), "gzip is refused as Unimplemented", err)
	none, err := v1.NodePrepareResources(within(30), &drav1.NodePrepareResourcesRequest{})
	ok(err == nil && len(none.Claims) == 0, "a call without claims is answered", none, err)

	ok(racesWell(v1, claims), "hundreds of calls at once on one connection: each has its own answer")
	unknown := &drav1.Claim{Namespace: "gone", Uid: "ffffffff-0000-4000-8000-ffffffffffff", Name: "gone"}
	undone, err := v1beta1.NodeUnprepareResources(within(60), &drav1beta1.NodeUnprepareResourcesRequest{Claims: beta([]*drav1.Claim{claims[0], unknown})})
	ok(err == nil && known(undone) && len(undone.Claims) == 2 && undone.Claims[claims[0].Uid].GetError() == "" && undone.Claims[unknown.Uid].GetError() == "",
		"v1beta1: given up, and an unknown claim is no error", undone, err)
	rest, err := v1.NodeUnprepareResources(within(60), &drav1.NodeUnprepareResourcesRequest{Claims: claims})
	ok(err == nil && known(rest) && len(rest.Claims) == len(claims), "v1: all are given up", rest, err)
}

// racesWell: many calls are under way at once, each of which is answered about its own claim.
func racesWell(client drav1.DRAPluginClient, claims []*drav1.Claim) bool {
	var wait sync.WaitGroup
	wrong := make(chan string, 300)
	for i := 0; i < 300; i++ {
		wait.Add(1)
		go func(c *drav1.Claim) {
			defer wait.Done()
			r, err := client.NodePrepareResources(within(60), &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{c}})
			if err != nil || len(r.Claims) != 1 || r.Claims[c.Uid] == nil || r.Claims[c.Uid].Error != "" {
				wrong <- fmt.Sprint(c, r, err)
			}
		}(claims[i%(len(claims)-1)])
	}
	wait.Wait()
	close(wrong)
	for w := range wrong {
		fmt.Println("#", w)
		return false
	}
	return true
}

// list is a health list, whichever version it came by: device -> its health, and the sentence.
type list map[string]string

type message interface {
	proto.Message
	comparable
}

// watched reads lists from a stream until one is good. Return: it; nil = none came.
func watched[M message](receive func() (M, error), good func(list) bool) list {
	for {
		m, err := receive()
		if err != nil || !known(m) {
			fmt.Println("#", m, err)
			return nil
		}
		l := list{}
		devices := reflect.ValueOf(m).Elem().FieldByName("Devices")
		for i := 0; i < devices.Len(); i++ {
			d := devices.Index(i).Interface().(interface {
				GetMessage() string
				GetLastUpdatedTime() int64
				GetHealthCheckTimeoutSeconds() int64
			})
			at := devices.Index(i).Elem()
			id := at.FieldByName("Device").Interface().(interface {
				GetPoolName() string
				GetDeviceName() string
			})
			health := fmt.Sprint(at.FieldByName("Health").Interface())
			if id.GetPoolName() != "n1" || time.Since(time.Unix(d.GetLastUpdatedTime(), 0)).Abs() > 5*time.Minute {
				return nil
			}
			l[id.GetDeviceName()] = strings.TrimSpace(health + " " + d.GetMessage())
		}
		if good(l) {
			return l
		}
	}
}

// checkHealth: a device breaks, by its PCI configuration space, while both versions of the stream are open.
func checkHealth(conn *grpc.ClientConn, config string) {
	ctx, cancel := context.WithCancel(within(60))
	defer cancel()
	v1, err := healthv1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
	if err != nil {
		panic(err)
	}
	alpha, err := healthv1alpha1.NewDRAResourceHealthClient(conn).NodeWatchResources(ctx, &healthv1alpha1.NodeWatchResourcesRequest{})
	if err != nil {
		panic(err)
	}
	any := func(list) bool { return true }
	first, older := watched(v1.Recv, any), watched(alpha.Recv, any)
	healthy := func(l list) (n int) {
		for _, said := range l {
			if said == "HEALTHY" {
				n++
			}
		}
		return
	}
	ok(len(first) > 0 && healthy(first) == len(first), "health v1: a complete list of healthy devices, in fields that the kubelet knows", first)
	ok(reflect.DeepEqual(first, older), "health v1alpha1: the same", older)
	whole, err := os.ReadFile(config)
	if err != nil {
		panic(err)
	}
	os.WriteFile(config, bytes.Repeat([]byte{0xff}, len(whole)), 0o644)
	sick := func(l list) bool {
		for _, said := range l {
			if strings.HasPrefix(said, "UNHEALTHY FallenOffBus: ") {
				return len(l) == len(first)
			}
		}
		return false
	}
	ok(watched(v1.Recv, sick) != nil, "health v1: a device that breaks, with its sentence, in a complete list")
	ok(watched(alpha.Recv, sick) != nil, "health v1alpha1: likewise")
	cancel()
	_, err = v1.Recv()
	ok(is(err, codes.Canceled), "a stream that is given up ends", err)
	short, end := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer end()
	stream, err := healthv1.NewDRAResourceHealthClient(conn).NodeWatchResources(short, &healthv1.NodeWatchResourcesRequest{})
	for err == nil {
		_, err = stream.Recv()
	}
	ok(is(err, codes.DeadlineExceeded), "a stream's deadline is kept", err)
}

// checkDRA: an agent that somebody else started, and claims that its store has.
func checkDRA(socket, config string, words []string) {
	endpoint := checkRegistration(socket)
	if endpoint == "" {
		return
	}
	conn := dial(endpoint)
	defer conn.Close()
	checkClaims(conn, claimsOf(words))
	checkHealth(conn, config)
}
