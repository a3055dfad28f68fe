// A kubelet's half of the device plugin API and of DRA in grpc-go with Kubernetes' own message types: what the plugin and the driver are
// proven and measured against. It starts plugin-host (or the command given) itself; the agent of `dra` is somebody else's.
//
//	grpc-go check PLUGIN_HOST                       TAP
//	grpc-go bench PLUGIN_HOST                       rows of figures
//	grpc-go restarts PLUGIN_HOST DIR                kubelet restarts where inotify cannot be had
//	grpc-go dra REG.SOCK CONFIG CLAIM...            TAP: a driver, a device's configuration space that breaks it, NAMESPACE/UID/NAME
//	grpc-go latency DIR RESOURCE N                  as a kubelet in DIR: latency of an agent that somebody else started
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	v1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// ---- a kubelet ----------------------------------------------------------------------------------------------------

type plugin struct {
	resource, endpoint string
	conn               *grpc.ClientConn
	client             v1beta1.DevicePluginClient
	mu                 sync.Mutex
	list               []*v1beta1.Device
	lists              int
	first              time.Time
	changed            chan struct{}
	err                error
}

type kubelet struct {
	v1beta1.UnsafeRegistrationServer
	dir        string
	server     *grpc.Server
	registered chan *plugin
	refuse     func(n int) error
	calls      int
	started    time.Time
}

func (k *kubelet) Register(ctx context.Context, r *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	k.calls++
	if k.refuse != nil {
		if err := k.refuse(k.calls); err != nil {
			return nil, err
		}
	}
	// as the kubelet dials: blocking, from inside the call, 10 s
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := grpc.DialContext(ctx, filepath.Join(k.dir, r.Endpoint), grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", addr)
		}))
	if err != nil {
		return nil, err
	}
	p := &plugin{resource: r.ResourceName, endpoint: r.Endpoint, conn: conn, client: v1beta1.NewDevicePluginClient(conn),
		changed: make(chan struct{}, 1)}
	options, err := p.client.GetDevicePluginOptions(context.Background(), &v1beta1.Empty{})
	if err != nil || !options.GetPreferredAllocationAvailable || options.PreStartRequired || r.Version != v1beta1.Version {
		return nil, fmt.Errorf("options %v, version %s: %v", options, r.Version, err)
	}
	go p.watch()
	k.registered <- p
	return &v1beta1.Empty{}, nil
}

func (p *plugin) watch() {
	stream, err := p.client.ListAndWatch(context.Background(), &v1beta1.Empty{})
	for err == nil {
		var r *v1beta1.ListAndWatchResponse
		if r, err = stream.Recv(); err == nil {
			p.mu.Lock()
			p.list = r.Devices
			if p.lists++; p.lists == 1 {
				p.first = time.Now()
			}
			p.mu.Unlock()
			p.wake()
		}
	}
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.wake()
}

func (p *plugin) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *plugin) waitList(good func([]*v1beta1.Device) bool) bool {
	deadline := time.After(5 * time.Second)
	for {
		p.mu.Lock()
		ok := p.lists > 0 && good(p.list)
		p.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-p.changed:
		case <-deadline:
			return false
		}
	}
}

func newKubelet(dir string, options ...grpc.ServerOption) *kubelet {
	k := &kubelet{dir: dir, registered: make(chan *plugin, 64), server: grpc.NewServer(options...)}
	v1beta1.RegisterRegistrationServer(k.server, k)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries { // a starting kubelet removes the sockets
		if e.Type()&os.ModeSocket != 0 {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		panic(err)
	}
	k.started = time.Now()
	go k.server.Serve(l)
	return k
}

func (k *kubelet) wait(timeout time.Duration) *plugin {
	select {
	case p := <-k.registered:
		return p
	case <-time.After(timeout):
		return nil
	}
}

// ---- the plugin under test ----------------------------------------------------------------------------------------

type host struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startHost(program, dir string, options ...string) *host {
	h := &host{cmd: exec.Command(program, append([]string{dir}, options...)...)}
	h.in, _ = h.cmd.StdinPipe()
	out, _ := h.cmd.StdoutPipe()
	if os.Getenv("VERBOSE") != "" {
		h.cmd.Stderr = os.Stderr
	}
	if err := h.cmd.Start(); err != nil {
		panic(err)
	}
	h.out = bufio.NewReader(out)
	h.out.ReadString('\n')
	return h
}

func (h *host) do(command string) map[string]any {
	fmt.Fprintln(h.in, command)
	line, _ := h.out.ReadString('\n')
	answer := map[string]any{}
	json.Unmarshal([]byte(line), &answer)
	return answer
}

func (h *host) stop() error {
	h.in.Close()
	return h.cmd.Wait()
}

func (h *host) rss() int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.cmd.Process.Pid))
	var size, pages int
	fmt.Sscan(string(b), &size, &pages)
	return pages * os.Getpagesize()
}

func id(n int) string { return fmt.Sprintf("GPU-%08x-0000-4000-8000-000000000000", n) }

func ids(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, id(i))
	}
	return
}

func allocate(p *plugin, names []string) (*v1beta1.ContainerAllocateResponse, error) {
	r, err := p.client.Allocate(context.Background(), &v1beta1.AllocateRequest{
		ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: names}}})
	if err != nil {
		return nil, err
	}
	return r.ContainerResponses[0], nil
}

func preferred(p *plugin, available, must []string, size int32) ([]string, error) {
	r, err := p.client.GetPreferredAllocation(context.Background(), &v1beta1.PreferredAllocationRequest{
		ContainerRequests: []*v1beta1.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: size}}})
	if err != nil {
		return nil, err
	}
	return r.ContainerResponses[0].DeviceIDs, nil
}

// ---- check --------------------------------------------------------------------------------------------------------

var count, failed int

func ok(good bool, what string, detail ...any) {
	count++
	if good {
		fmt.Printf("ok %d - %s\n", count, what)
		return
	}
	failed++
	fmt.Printf("not ok %d - %s\n# %v\n", count, what, detail)
}

func is(err error, code codes.Code) bool { return status.Code(err) == code }

func tempDir() string {
	dir, err := os.MkdirTemp("", "remuda-go-")
	if err != nil {
		panic(err)
	}
	return dir
}

func checkServer(program string) {
	dir := tempDir()
	defer os.RemoveAll(dir)
	k := newKubelet(dir)
	defer k.server.Stop()
	h := startHost(program, dir, "devices=64", "group=16")
	p := k.wait(5 * time.Second)
	ok(p != nil && p.resource == "nvidia.com/gpu", "registers with grpc-go's server while that dials back")
	if p == nil {
		return
	}
	ok(p.waitList(func(l []*v1beta1.Device) bool {
		return len(l) == 64 && l[0].Health == "Healthy" && l[63].Topology.Nodes[0].ID == 1 && l[0].ID == id(0)
	}), "the list decodes with Kubernetes' own types")
	h.do("health " + id(5) + " 0")
	ok(p.waitList(func(l []*v1beta1.Device) bool { return l[5].Health == "Unhealthy" }), "a change arrives on the open stream")
	a, err := allocate(p, []string{id(9), id(2)})
	ok(err == nil && a.Envs["REMUDA_DEVICES"] == id(2)+","+id(9) && a.Devices[1].HostPath == "/dev/nvidia9" &&
		a.Devices[0].Permissions == "rw", "Allocate", a, err)
	_, err = allocate(p, []string{id(5)})
	ok(is(err, codes.FailedPrecondition) && strings.Contains(err.Error(), id(5)), "a refusal carries its status and sentence", err)
	_, err = allocate(p, []string{"müßig 100%"})
	ok(is(err, codes.NotFound) && strings.Contains(err.Error(), "müßig 100%"), "what is not ASCII survives grpc-message", err)
	set, err := preferred(p, ids(16, 64), []string{id(40)}, 16)
	ok(err == nil && len(set) == 16 && set[0] == id(40), "GetPreferredAllocation", set, err)
	_, err = p.client.PreStartContainer(context.Background(), &v1beta1.PreStartContainerRequest{DevicesIds: ids(0, 1)})
	ok(err == nil, "PreStartContainer", err)

	err = p.conn.Invoke(context.Background(), "/v1beta1.DevicePlugin/Nothing", &v1beta1.Empty{}, &v1beta1.Empty{})
	ok(is(err, codes.Unimplemented), "an unknown method is Unimplemented", err)
	request := &v1beta1.AllocateRequest{ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: ids(0, 60)}}}
	_, err = p.client.Allocate(context.Background(), request, grpc.UseCompressor("gzip"))
	ok(is(err, codes.Unimplemented), "gzip is refused as Unimplemented", err)
	huge := &v1beta1.AllocateRequest{ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: []string{strings.Repeat("x", 3<<20)}}}}
	_, err = p.client.Allocate(context.Background(), huge)
	ok(is(err, codes.ResourceExhausted), "3 MiB are ResourceExhausted", err)
	_, err = allocate(p, ids(0, 4))
	ok(err == nil, "and the connection goes on", err)

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	stream, _ := p.client.ListAndWatch(ctx, &v1beta1.Empty{})
	for err = nil; err == nil; {
		_, err = stream.Recv()
	}
	cancel()
	ok(is(err, codes.DeadlineExceeded), "a stream's deadline is kept", err)

	var wait sync.WaitGroup
	errs := make(chan error, 400)
	for i := 0; i < 400; i++ { // four times the streams that the server allows at once
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			if i%2 == 0 {
				if _, err := allocate(p, []string{id(10 + i%50)}); err != nil {
					errs <- err
				}
				return
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := p.client.ListAndWatch(ctx, &v1beta1.Empty{})
			if err == nil {
				_, err = s.Recv()
			}
			if err != nil {
				errs <- err
			}
		}(i)
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
	}
	ok(len(errs) == 0, "hundreds of calls at once on one connection: none fails", len(errs))

	k.server.Stop()
	p.conn.Close()
	k = newKubelet(dir)
	p = k.wait(5 * time.Second)
	ok(p != nil, "registered after a restart")
	md := metadata.Pairs("x-long", strings.Repeat("header", 300), "x-other", "value")
	bad := 0
	for i := 0; i < 3000 && p != nil; i++ {
		md.Set("x-turn", fmt.Sprint(i%300)) // entries come into HPACK's dynamic table and are pushed out of it
		ctx := metadata.NewOutgoingContext(context.Background(), md)
		if _, err := p.client.GetDevicePluginOptions(ctx, &v1beta1.Empty{}); err != nil {
			bad++
		}
	}
	ok(bad == 0, "3,000 calls with a moving HPACK table", bad)
	ok(h.stop() == nil, "leaves with exit code 0")
}

func checkClient(program string) {
	dir := tempDir()
	defer os.RemoveAll(dir)
	k := newKubelet(dir)
	k.refuse = func(n int) error {
		if n < 3 {
			return status.Error(codes.Unknown, "ñot yet: 50% ready\nreally")
		}
		return nil
	}
	h := startHost(program, dir)
	ok(k.wait(5*time.Second) != nil && k.calls == 3, "grpc-go's refusals are taken, the third answer counts", k.calls)
	k.server.GracefulStop() // GOAWAY, then the end
	k = newKubelet(dir, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond,
		MaxConnectionAgeGrace: 10 * time.Millisecond, Time: time.Second, Timeout: time.Second}))
	k.refuse = func(n int) error {
		if n < 5 {
			time.Sleep(15 * time.Millisecond) // so that GOAWAY meets the call
			return errors.New("again")
		}
		return nil
	}
	ok(k.wait(8*time.Second) != nil, "a server that says GOAWAY all the time is registered with")
	k.server.Stop()
	h.stop()
	k = newKubelet(dir)
	h = startHost(program, dir, "devices=1024", "shares=200", "group=8")
	p := k.wait(5 * time.Second)
	ok(p != nil && p.waitList(func(l []*v1beta1.Device) bool { return len(l) > 10000 }),
		"a list that would pass 4 MiB is cut, not lost")
	p.mu.Lock()
	fmt.Printf("# %d of 204,800 ids, stream error %v\n", len(p.list), p.err)
	ok(p.err == nil, "and grpc-go's stream lives", p.err)
	p.mu.Unlock()
	k.server.Stop()
	h.stop()
}

// ---- bench --------------------------------------------------------------------------------------------------------

func percentile(d []time.Duration, p float64) time.Duration {
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	n := int(float64(len(d))*p+0.9999) - 1
	if n < 0 {
		n = 0
	}
	return d[n]
}

func verdict(good bool) string {
	if good {
		return "within"
	}
	return "MISSED"
}

func row(what string, measured any, limit string, good bool) {
	fmt.Printf("%-72s | %14v | %-12s | %s\n", what, measured, limit, verdict(good))
}

// window is n consecutive ids from i on, in a ring.
func window(all []string, i, n int) (out []string) {
	for ; n > 0; n-- {
		out = append(out, all[i%len(all)])
		i++
	}
	return
}

func latency(p *plugin, n int, available []string) (alloc, prefer []time.Duration, err error) {
	for i := 0; i < n && err == nil; i++ {
		ids := window(available, i, 1+i%min(16, len(available)))
		begin := time.Now()
		_, err = allocate(p, ids)
		alloc = append(alloc, time.Since(begin))
		if err == nil {
			must := window(available, i, i%3)
			begin = time.Now()
			_, err = preferred(p, available, must, int32(1+i%len(available)))
			prefer = append(prefer, time.Since(begin))
		}
	}
	return
}

// rounds gives the median of the p99s of five rounds: the figure of the plugin, not of what else the machine did.
func rounds(p *plugin, n int, available []string) (alloc, prefer time.Duration) {
	var allocs, prefers []time.Duration
	for i := 0; i < 5; i++ {
		a, f, err := latency(p, n, available)
		if err != nil {
			panic(err)
		}
		allocs, prefers = append(allocs, percentile(a, .99)), append(prefers, percentile(f, .99))
	}
	return percentile(allocs, .5), percentile(prefers, .5)
}

func benchLatency(program string) {
	for _, fabric := range []string{"group=64", "group=8"} {
		dir := tempDir()
		k := newKubelet(dir)
		h := startHost(program, dir, "devices=64", fabric)
		p := k.wait(5 * time.Second)
		p.waitList(func(l []*v1beta1.Device) bool { return len(l) == 64 })
		h.do("health " + id(63) + " 0")
		time.Sleep(100 * time.Millisecond)
		latency(p, 200, ids(0, 63))
		a, f := rounds(p, 1500, ids(0, 63))
		row("Allocate, 64 devices ("+fabric+"), one dead, by grpc-go, p99 (median of 5)", a, "<= 1 ms", a <= time.Millisecond)
		row("GetPreferredAllocation, the same, p99 (median of 5)", f, "<= 1 ms", f <= time.Millisecond)
		h.stop()
		k.server.Stop()
		os.RemoveAll(dir)
	}
}

func benchRestarts(program string, restarts int) {
	dir := tempDir()
	defer os.RemoveAll(dir)
	h := startHost(program, dir, "devices=16")
	var times []time.Duration
	missed := 0
	var warm int
	for i := 0; i < restarts; i++ {
		k := newKubelet(dir)
		p := k.wait(5 * time.Second)
		if p == nil || !p.waitList(func(l []*v1beta1.Device) bool { return len(l) == 16 }) {
			missed++
		} else {
			times = append(times, p.first.Sub(k.started))
			p.conn.Close()
		}
		k.server.Stop()
		if i == restarts/10 {
			warm = h.rss()
		}
	}
	row(fmt.Sprintf("kubelet.sock re-created %d times: missed", restarts), missed, "0", missed == 0)
	row("kubelet.sock re-created -> full list received, p99", percentile(times, .99), "<= 200 ms", percentile(times, .99) <= 200*time.Millisecond)
	row("the same, p50", percentile(times, .5), "", true)
	row("RSS after all restarts - after a tenth of them", fmt.Sprintf("%d KiB", (h.rss()-warm)/1024), "<= 256 KiB", h.rss()-warm <= 256<<10)
	h.stop()
}

// benchWithoutInotify starts the plugin in a user namespace of its own that has no inotify instances to give.
func benchWithoutInotify(program, dir string) {
	script := filepath.Join(dir, "without-inotify")
	os.WriteFile(script, []byte("#!/bin/sh\nexec unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances || exit 1; exec \"$@\"' - "+
		program+" \"$@\"\n"), 0o755)
	if exec.Command("unshare", "-Ur", "sh", "-c",
		"echo 0 >/proc/sys/user/max_inotify_instances").Run() != nil {
		fmt.Printf("%-72s | %14s | %-12s | %s\n", "without inotify: kubelet.sock re-created -> full list", "-", "<= 5 s", "skipped: no user namespaces here")
		return
	}
	h := startHost(script, dir, "devices=16")
	var worst time.Duration
	missed := 0
	for i := 0; i < 8; i++ {
		time.Sleep(time.Duration(i*130) * time.Millisecond)
		k := newKubelet(dir)
		p := k.wait(8 * time.Second)
		if p == nil || !p.waitList(func(l []*v1beta1.Device) bool { return len(l) == 16 }) {
			missed++
		} else if d := p.first.Sub(k.started); d > worst {
			worst = d
		}
		k.server.Stop()
	}
	row("without inotify: kubelet.sock re-created -> full list, slowest of 8", worst, "<= 5 s", worst <= 5*time.Second && missed == 0)
	h.stop()
}

func benchFailure(program string) {
	dir := tempDir()
	defer os.RemoveAll(dir)
	k := newKubelet(dir)
	h := startHost(program, dir, "devices=64")
	p := k.wait(5 * time.Second)
	p.waitList(func(l []*v1beta1.Device) bool { return len(l) == 64 })
	var times []time.Duration
	for i := 0; i < 200; i++ {
		health := []string{"Unhealthy", "Healthy"}[i%2]
		begin := time.Now()
		fmt.Fprintf(h.in, "health %s %d\n", id(7), i%2)
		if !p.waitList(func(l []*v1beta1.Device) bool { return l[7].Health == health }) {
			panic("no list")
		}
		times = append(times, time.Since(begin))
		h.out.ReadString('\n')
		time.Sleep(time.Duration(i%60) * time.Millisecond)
	}
	row("a device's health changes -> list received, p99", percentile(times, .99), "<= 100 ms", percentile(times, .99) <= 100*time.Millisecond)
	h.stop()
	k.server.Stop()
}

// benchStuck opens a stream and never reads: raw HTTP/2 would do, a client without a reader does too.
func benchStuck(program string) {
	dir := tempDir()
	defer os.RemoveAll(dir)
	k := newKubelet(dir)
	defer k.server.Stop()
	h := startHost(program, dir, "devices=64")
	p := k.wait(5 * time.Second)
	p.waitList(func(l []*v1beta1.Device) bool { return len(l) == 64 })
	stuck, err := grpc.NewClient("unix:"+filepath.Join(dir, p.endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	_, err = v1beta1.NewDevicePluginClient(stuck).ListAndWatch(context.Background(), &v1beta1.Empty{})
	if err != nil {
		panic(err)
	}
	h.do("storm 2000")
	before := h.rss()
	begin := time.Now()
	h.do("storm 100000")
	took := time.Since(begin)
	after := h.rss()
	row("100,000 updates of 64 devices against a reader that stopped: RSS", fmt.Sprintf("%+d KiB", (after-before)/1024), "flat, 512 KiB", after-before <= 512<<10)
	row("the same, an update", took/100000, "", true)
	_, err = allocate(p, []string{id(3)})
	row("and Allocate answers", err == nil, "true", err == nil)
	h.stop()
}

func watchLatency(dir, resource string, n int) {
	k := newKubelet(dir)
	for {
		p := k.wait(10 * time.Second)
		if p == nil {
			fmt.Fprintln(os.Stderr, "no registration of", resource)
			os.Exit(1)
		}
		if p.resource != resource {
			continue
		}
		p.waitList(func(l []*v1beta1.Device) bool { return len(l) > 0 })
		var healthy []string
		for _, d := range p.list {
			if d.Health == "Healthy" {
				healthy = append(healthy, d.ID)
			}
		}
		a, f := rounds(p, n, healthy)
		row(fmt.Sprintf("remuda-agent, %d devices, %d healthy: Allocate p99 (median of 5)", len(p.list), len(healthy)), a, "<= 1 ms", a <= time.Millisecond)
		row("remuda-agent: GetPreferredAllocation p99 (median of 5)", f, "<= 1 ms", f <= time.Millisecond)
		return
	}
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: grpc-go check|bench PLUGIN_HOST, dra REG.SOCK CONFIG CLAIM..., or latency DIR RESOURCE N")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "check":
		checkServer(os.Args[2])
		checkClient(os.Args[2])
		fmt.Printf("1..%d\n", count)
		if failed > 0 {
			os.Exit(1)
		}
	case "dra":
		checkDRA(os.Args[2], os.Args[3], os.Args[4:])
		fmt.Printf("1..%d\n", count)
		if failed > 0 {
			os.Exit(1)
		}
	case "bench":
		benchLatency(os.Args[2])
		benchFailure(os.Args[2])
		benchRestarts(os.Args[2], 1000)
		benchStuck(os.Args[2])
	case "restarts":
		benchWithoutInotify(os.Args[2], os.Args[3])
	case "latency":
		var n int
		fmt.Sscan(os.Args[4], &n)
		watchLatency(os.Args[2], os.Args[3], n)
	}
}
