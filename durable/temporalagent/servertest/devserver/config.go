package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const clusterName = "active"

// services are the parts of a server. All run in this process, and each has a
// port of its own.
var services = []primitives.ServiceName{
	primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService,
}

// serverOptions returns the configuration of a server with one history shard.
// The hosts are static: the gossip between servers would look for the hosts
// of a killed process.
func serverOptions(host string, port int, db, namespace string) ([]temporal.ServerOption, error) {
	store, err := database(db, namespace)
	if err != nil {
		return nil, err
	}
	frontend := net.JoinHostPort(host, strconv.Itoa(port))
	c := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: frontend},
		Services:            map[string]config.Service{},
	}
	c.Global.Membership.BroadcastAddress = host
	c.Archival.History.State, c.Archival.Visibility.State = "disabled", "disabled"
	c.NamespaceDefaults.Archival.History.State, c.NamespaceDefaults.Archival.Visibility.State = "disabled", "disabled"

	hosts := map[primitives.ServiceName]static.Hosts{}
	for _, service := range services {
		own := port
		if service != primitives.FrontendService {
			if own, err = portOn(host, "0"); err != nil {
				return nil, err
			}
		}
		c.Services[string(service)] = config.Service{RPC: config.RPC{GRPCPort: own, BindOnIP: host}}
		hosts[service] = static.SingleLocalHost(net.JoinHostPort(host, strconv.Itoa(own)))
	}
	return []temporal.ServerOption{
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
	}, nil
}

// database returns the SQLite database of a file, or one in memory for "", with
// its tables and the namespace.
func database(file, namespace string) (*config.SQL, error) {
	c := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: file, ConnectAttributes: map[string]string{
		"mode": "rwc", "journal_mode": "wal", "synchronous": "normal",
	}}
	if file == "" {
		c.DatabaseName = "memory" + strconv.FormatUint(rand.Uint64(), 36)
		c.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
	} else if _, err := os.Stat(file); os.IsNotExist(err) {
		if err := schema.SetupSchema(c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	ns, err := schema.NewNamespaceConfig(clusterName, namespace, false, nil)
	if err != nil {
		return nil, err
	}
	if err := schema.CreateNamespaces(c, ns); err != nil {
		return nil, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	return c, nil
}

// portOn returns the port of an address that is not in use, for port 0 a
// free one. The server wants to know the numbers of its ports before it listens,
// and ends with a page of stack if it cannot.
func portOn(host, port string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
