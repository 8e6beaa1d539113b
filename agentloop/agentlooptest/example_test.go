package agentlooptest_test

import (
	"fmt"

	"github.com/toolmend/toolmend/agentloop/agentlooptest"
)

func ExampleTrajectory_Diff() {
	got := agentlooptest.Trajectory{{Name: "look", Arguments: `{"at":"account"}`}, {Name: "pay", Arguments: `{"to":"Ann","amount":5}`}}
	want := agentlooptest.Trajectory{{Name: "look"}, {Name: "pay", Arguments: `{"amount":7}`}}
	fmt.Print(got.Diff(want, agentlooptest.Strict|agentlooptest.Subset))
	// Output:
	//   look {"at":"account"}
	// - pay {"amount":7}
	// + pay {"to":"Ann","amount":5}
}
